//! When two pieces of machine code are the same code.

use super::cubin::Cubin;
use super::error::SassError;
use super::kernel::CubinKernel;
use super::kernel::Resources;
use sha2::{Digest, Sha256};

/// Bytes of an instruction.
const INSTRUCTION: usize = 16;

/// The constant bank of addresses of module-scope variables and functions, which the loader
/// fills.
const ADDRESS_BANK: u128 = 4;

/// Bytes of a slot of that bank.
const ADDRESS_BYTES: u128 = 8;

/// `LDC`, `ULDC` and `LDCU` without their forms: what reads a bank at a register's offset.
const INDEXED: [u128; 3] = [0x182, 0x0b9, 0x1ac];

/// `MOV`, `UMOV`, `IMAD` (as `IMAD.MOV`) and `HFMA2`, without their forms: what ptxas puts
/// numbers into registers with.
const NUMBERS: [u128; 4] = [0x002, 0x082, 0x024, 0x035];

/// The register that reads as zero, in both register files.
const NO_REGISTER: [u128; 2] = [0xff, 0x3f];

/// Why a cubin's kernel has no digest.
#[derive(Debug, thiserror::Error)]
pub enum CodeDigestError {
    #[error(transparent)]
    Cubin(#[from] SassError),
    #[error("the compiler made no kernel `{0}`")]
    NoKernel(String),
}

/// Identifies a variant: digests its machine code and the resources that a launch of it takes.
pub fn code_digest(cubin: &[u8], kernel: &str) -> Result<String, CodeDigestError> {
    let cubin = Cubin::parse(cubin)?;
    let kernel = cubin.kernel(kernel).ok_or_else(|| CodeDigestError::NoKernel(kernel.to_owned()))?;
    let Resources { registers, static_shared, stack_frame, barriers, .. } = kernel.resources;
    let mut digest = Sha256::new();
    for number in [registers, static_shared, stack_frame, barriers] {
        digest.update(number.to_le_bytes());
    }
    digest.update(kernel.placeless_code());
    Ok(format!("{:x}", digest.finalize()))
}

impl CubinKernel<'_> {
    /// The machine code without the slot numbers of the bank of addresses.
    ///
    /// An operand `c[0x4][n]` is the address of a module-scope variable or of a function; which
    /// slot it has depends on what other kernels are assembled with this one, and does not change
    /// what the code does or how long it takes. The bank is in bits 54 to 58 of an instruction
    /// and the slot in bits 38 to 53, where bits 9 to 11 say that there is such an operand.
    /// A call by address (`printf`, `assert`) has its slot in a register that is loaded
    /// with the number just before; what stands between them (stores of what is printed,
    /// comparisons, barriers) may have that register's number where others have the
    /// register that they write.
    pub fn placeless_code(&self) -> Vec<u8> {
        let mut words: Vec<u128> = self.code.chunks_exact(INSTRUCTION).map(instruction_word).collect();
        for at in 0..words.len() {
            let bits = words[at];
            if !matches!(bits >> 9 & 0x7, 3 | 5) || bits >> 54 & 0x1f != ADDRESS_BANK {
                continue;
            }
            words[at] &= !(0xffff << 38);
            let base = bits >> 24 & 0xff;
            if INDEXED.contains(&(bits & 0x1ff))
                && !NO_REGISTER.contains(&base)
                && let Some(number) =
                    words[..at].iter_mut().rev().find(|word| is_slot(**word) && destination_register(**word) == base)
            {
                *number &= !(0xffff_ffff << 32);
            }
        }
        let mut code: Vec<u8> = words.into_iter().flat_map(u128::to_le_bytes).collect();
        code.extend_from_slice(&self.code[code.len()..]);
        code
    }
}

fn instruction_word(bytes: &[u8]) -> u128 {
    let mut word = [0; INSTRUCTION];
    word.copy_from_slice(bytes);
    u128::from_le_bytes(word)
}

/// Bits 16 to 23, the register that most instructions write.
fn destination_register(word: u128) -> u128 {
    word >> 16 & 0xff
}

/// An instruction that writes the number of a slot to a register: its last operand, in bits 32
/// to 63, where addresses begin in a bank.
fn is_slot(word: u128) -> bool {
    let number = word >> 32 & 0xffff_ffff;
    NUMBERS.contains(&(word & 0x1ff))
        && matches!(word >> 9 & 0x7, 2 | 4)
        && number <= 0xffff
        && number.is_multiple_of(ADDRESS_BYTES)
}

//! When two pieces of machine code are the same code.

use super::Kernel;

/// Bytes of an instruction.
const INSTRUCTION: usize = 16;

/// The constant bank of addresses of module-scope variables, which the loader fills.
const ADDRESS_BANK: u128 = 4;

impl Kernel<'_> {
    /// The machine code without the slot numbers of the bank of addresses.
    ///
    /// An operand `c[0x4][n]` is the address of a module-scope variable; which slot it has hangs on what other kernels
    /// are assembled with this one, and does not change what the code does or how long it takes. The bank is in bits 54
    /// to 58 of an instruction and the slot in bits 38 to 53, where bits 9 to 11 say that there is such an operand.
    pub fn placeless_code(&self) -> Vec<u8> {
        let mut code = self.code.to_vec();
        for bytes in code.chunks_exact_mut(INSTRUCTION) {
            let mut word = [0; INSTRUCTION];
            word.copy_from_slice(bytes);
            let bits = u128::from_le_bytes(word);
            let form = bits >> 9 & 0x7;
            if matches!(form, 3 | 5) && bits >> 54 & 0x1f == ADDRESS_BANK {
                bytes.copy_from_slice(&(bits & !(0xffff_u128 << 38)).to_le_bytes());
            }
        }
        code
    }
}

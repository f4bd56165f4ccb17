//! The codes of all messages: the only table of them. `docs/messages.md` has an entry for each.
//!
//! Invariants: a code is never given another meaning, and a number that was in a release is
//! never used again.

use std::fmt;

macro_rules! codes {
    ($($name:ident = $number:literal, $title:literal;)*) => {
        /// What a message is about; printed as `[N0031]` at the end of the message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum MessageCode {
            $(#[doc = $title] $name = $number,)*
        }

        impl MessageCode {
            /// All codes in the order of their numbers.
            pub const ALL: &[MessageCode] = &[$(MessageCode::$name),*];

            /// The name in the source.
            pub fn name(self) -> &'static str {
                match self { $(MessageCode::$name => stringify!($name),)* }
            }

            /// What it is about, in a few words: the heading of its entry in the book.
            pub fn title(self) -> &'static str {
                match self { $(MessageCode::$name => $title,)* }
            }
        }
    };
}

codes! {
    // The environment, and what runs nvcc.
    NvccNotFound = 1, "no usable nvcc";
    CannotStart = 2, "a program cannot be started";
    InvalidSetting = 3, "a variable has a value that is not understood";
    UnknownVariable = 4, "an unknown NVTUNE_ variable";
    StrictWarnings = 5, "NVTUNE_STRICT turned warnings into errors";
    NvccTakesOver = 6, "nvtune cannot go on, and nvcc builds alone";
    OutputClosed = 7, "standard output cannot be written";
    Interrupted = 8, "interrupted, and can be continued";
    CallNotRead = 9, "a call of nvcc cannot be read";
    WrapperChanged = 10, "a wrapper changes the call of nvcc";

    // What was decided for a kernel.
    Kept = 31, "the baseline is kept: no configuration is faster";
    KeptByModel = 32, "the baseline is kept: no configuration is predicted to be faster";
    KeptAmongAllowed = 33, "the baseline is kept: no allowed configuration is faster";
    NothingKnown = 34, "the baseline is kept: no result is known";
    PointsNotAllowed = 35, "points that may not be chosen";
    CandidateRefused = 36, "a candidate was refused";
    WinnerRefused = 37, "the fastest configuration was refused";
    ContentsNotCompared = 38, "results were not compared for other contents";
    NotSanitized = 39, "the winner was not checked by compute-sanitizer";
    Throttled = 40, "the GPU was throttled";
    BlocksMayWait = 41, "blocks may wait for each other";
    MacrosInVain = 42, "macros that are varied in vain";
    MacrosScreened = 43, "not every set of macros was compiled";
    BudgetCut = 44, "the budget was too short to compile all";
    LockedElsewhere = 45, "the locked result is of another GPU";
    DriverCompiled = 46, "timed as the driver compiles the PTX";
    RefinementSkipped = 47, "the fastest configurations were not refined";
    LaunchesKept = 48, "launches stay as they are";
    ResultNotUsed = 49, "the tuned result is not used";
    CodeDiffers = 50, "the built code is not the timed code";
    BuildFails = 51, "nvcc fails with the tuned result";
    NotTransplanted = 52, "the winner's code does not fit into the object";

    // Kernels that are not tuned.
    ToolFailed = 60, "not tuned: a tool of the toolkit failed";
    SourceRefused = 61, "not tuned: the source does not compile";
    MacrosBreakSource = 62, "not tuned: the source does not compile with the macros";
    PtxNotRead = 63, "not tuned: the PTX cannot be read";
    MacroDefined = 64, "not tuned: a macro is defined elsewhere";
    InstanceTwice = 65, "not tuned: another comment tunes this instance";
    WrongDefault = 66, "not tuned: the default is not what the source has";
    UnknownArchitecture = 67, "not tuned: unknown architecture";
    BaselineUnusable = 68, "not tuned: the baseline cannot be built or launched";
    NoMachineCode = 69, "not tuned: the call makes no optimised machine code";
    WarpsRace = 70, "not tuned: warps race in shared memory";

    // Measuring.
    NoGpu = 80, "no GPU to measure on";
    RunnerNotRead = 81, "NVTUNE_RUNNER cannot be read";
    MeasuringNotStarted = 82, "the measuring process does not start";
    MeasuringSilent = 83, "the measuring process is silent";
    MeasuringOther = 84, "the measuring process is not this nvtune";
    GpuBusy = 85, "another nvtune has the GPU";
    Waiting = 86, "waiting for a GPU or a runner";
    MeasuringDied = 87, "the measuring process died";
    BaselineFails = 88, "not timed: the baseline cannot be measured";
    MeasuringFailed = 89, "measuring failed";
    GpuRunsNoCode = 90, "not timed: the GPU runs none of the code";
    BuffersTooLarge = 91, "not timed: the buffers are too large";
    NoWorkload = 92, "not timed: no workload";
    RequestNotRead = 93, "nvtune measure cannot go on";
    NotRecorded = 94, "not tuned: no launch is recorded";
    RecordingNotUsed = 95, "a recording cannot be used";
    KernelNotMarked = 96, "NVTUNE_KERNELS cannot mark a kernel";

    // The tuning comment: its form.
    UnknownClause = 101, "unknown clause";
    ClauseForm = 102, "malformed clause";
    GivenTwice = 103, "something is given twice";
    CommentNotClosed = 104, "the comment is not closed before the kernel";
    NoKernel = 106, "no kernel follows the comment";
    CommentTooLong = 107, "the comment is too long";
    Misspelled = 108, "a comment that nearly is a tuning comment";
    Expected = 109, "something else is expected here";
    NotExpected = 110, "something is not expected here";
    TooComplex = 111, "an expression is too large";
    UnknownName = 112, "unknown name";
    FunctionForm = 113, "a function is called wrongly";
    TokenForm = 114, "a character, number or text cannot be read";
    NotInteger = 115, "an integer is needed";
    NotConstant = 116, "a constant is needed";
    ListForm = 117, "malformed list or range";
    ListTooLong = 118, "a list has too many values";
    OutOfRange = 119, "a value is out of range";

    // The tuning comment: its clauses.
    BlockClause = 120, "wrong block clause";
    RegsClause = 121, "wrong regs clause";
    CacheClause = 122, "wrong cache clause";
    CarveoutClause = 123, "wrong carveout clause";
    DefineClause = 124, "wrong define clause";
    ThreadsClause = 125, "wrong threads clause";
    GridClause = 126, "wrong grid clause";
    SharedClause = 127, "wrong shared clause";
    TripsClause = 128, "wrong trips clause";
    LaunchClause = 129, "wrong launch clause";
    BudgetClause = 130, "wrong budget clause";
    NameClause = 131, "wrong name clause";
    UnknownWord = 132, "unknown word in a clause";
    DefaultClause = 133, "wrong default clause";
    ArgsClause = 134, "wrong args clause";
    BufferContents = 135, "wrong contents of a buffer";
    FileForm = 136, "wrong form of file(...)";
    StructureForm = 137, "wrong form of a structure";
    CheckClause = 138, "wrong check clause";
    SymbolClause = 139, "wrong symbol clause";
    TemplateClause = 140, "wrong template clause";
    NameClash = 141, "two kernels of one name";
    BlockUnknown = 142, "the block is not known";
    GridUnknown = 143, "the grid is not known";
    UnknownParameter = 144, "unknown parameter";
    ParameterMissing = 145, "a parameter has no value";
    MacroNameClash = 146, "a macro has the name of a parameter";
    UnrollClause = 147, "wrong unroll clause";

    // The tuning comment and its kernel.
    BlockTooLarge = 150, "a block that no GPU can launch";
    DefaultNotListed = 151, "the default is not among the values";
    GridTooLarge = 152, "a grid that no GPU can launch";
    SpaceTooLarge = 153, "the space is too large to search";
    SpaceEmpty = 154, "no configuration is valid";
    Excluded = 155, "a constraint excludes the configurations";
    NoValue = 156, "an expression has no value";
    NameWithoutValue = 157, "a name has no value here";
    SharedTooLarge = 158, "more shared memory than a launch may have";
    WrongType = 160, "a value does not fit the type";
    UnknownType = 161, "a parameter of a type that takes no value";
    WrongFields = 162, "wrong fields of a structure";
    BufferSize = 163, "a buffer of an impossible size";
    FileUnusable = 164, "a file of contents cannot be used";
    SymbolUnknown = 165, "unknown variable";
    CheckedBuffer = 166, "a buffer that cannot be checked";
    KernelNotCompiled = 167, "the compilation has no such kernel";
    ConstantDiffers = 168, "a constant has another value in the build";

    // Advice on a comment.
    PowerOperator = 170, "`^` is no power";
    NothingToTune = 171, "nothing is left to tune";
    ValuesIgnored = 172, "values that have no effect";
    BlockAssumed = 173, "the results depend on the block";
    SharedMissing = 174, "dynamic shared memory without its size";
    RegsOverride = 175, "register caps override another bound";
    OutputNotCovered = 176, "the threads do not cover the buffers";
    RestDropped = 177, "a division drops the rest";
    IntegerDivision = 178, "a division of integers";
    BeyondBuffer = 179, "the kernel reaches beyond a buffer";
    IdleWorkload = 180, "the kernel does nothing on the workload";
    OtherBlockLaunched = 181, "the program launches another block";
    LaunchWithoutStub = 182, "a launch that reaches no stub is not tuned";
    MacroUnused = 183, "a macro changes nothing";
    HeaderMisspelled = 184, "a misspelled header name";
    HeaderMacrosMissing = 185, "the header has no macros for a kernel";
    SpaceSampled = 186, "only a sample of the space is searched";

    // What a build writes.
    OutputFolderMissing = 200, "the output folder does not exist";
    HeaderOfOther = 202, "the header is of another object";

    // Lock file, cache, records.
    LockForeign = 210, "the lock file belongs to another user";
    LockEntry = 211, "an entry of the lock file cannot be used";
    LockNotRead = 212, "the lock file cannot be read";
    EntryStale = 213, "an entry of the lock file is stale";
    NotLocked = 214, "a kernel is not in the lock file";
    EntryOrphaned = 215, "an entry of a kernel that no longer exists";
    BuiltTwice = 216, "a kernel was built with different options";
    CacheNotWritten = 217, "the cache cannot be written";
    NoCache = 218, "there is no cache";
    RecordNotRead = 219, "a record cannot be read";

    // nvtune's own commands.
    CommandFailed = 230, "a command cannot do its work";
    WrongArgument = 231, "a wrong argument of a command";
    JobFailed = 232, "a source could not be tuned";
    DatabaseNotRead = 233, "the compilation database cannot be read";
    NothingMarked = 234, "no call compiles a marked kernel";
    NotProposed = 235, "no comment is proposed for a kernel";
    HeaderMissing = 236, "a header with a type is not found";
}

impl MessageCode {
    /// Returns the message with the code at its end.
    pub fn tag(self, message: impl fmt::Display) -> String {
        format!("{message} [{self}]")
    }
}

impl fmt::Display for MessageCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "N{:04}", *self as u16)
    }
}

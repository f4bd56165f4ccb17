//! Builds that are measured behind a real sshd and a real Slurm on the loopback interface, whose machine answers from recorded timings.
//!
//! They run in the full run only. A server that is not installed is named in the summary.

use super::project::{Project, compile, run, succeed};
use super::results::nvtune;
use crate::support::summary;
use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to be ready, and a process behind a runner to end.
const LIMIT: Duration = Duration::from_secs(60);

const RECORDING: &str = r#"{"device": {"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000, "sms": 132},
    "entries": [{"label": "block=512", "time_us": 50.0}, {"time_us": 100.0}]}"#;

/// The same, where each launch takes so long that a build is in the middle of them when it is looked at.
const SLOW_RECORDING: &str = r#"{"device": {"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000, "sms": 132},
    "log": "LOG",
    "entries": [{"label": "block=512", "time_us": 50.0, "pause_ms": 500}, {"time_us": 100.0, "pause_ms": 500}]}"#;

const WON: &str = "nvtune: saxpy: block=512 (2.00x over the baseline, measured)";

/// A server in a process of its own, which ends with its owner.
struct Server {
    process: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

/// The machine at the other end: `bin/nvtune` there replays recorded timings, and notes its process in `measuring`.
struct Machine {
    folder: tempfile::TempDir,
    servers: Vec<Server>,
    runner: String,
    /// The environment of the runner's own programs.
    environment: Vec<(&'static str, PathBuf)>,
}

/// Returns the path of an installed program; servers are in folders that PATH may lack.
fn find(name: &str) -> Result<PathBuf, String> {
    let mut folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    folders.extend(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
    let list = std::env::join_paths(folders).expect("no colons");
    which::which_in(name, Some(list), "/").map_err(|_| format!("no {name} here"))
}

/// Returns a port that nothing listens on.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port()
}

/// Waits until something is so.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("bin")).expect("a folder");
        let machine = Self { folder, servers: Vec::new(), runner: String::new(), environment: Vec::new() };
        let script = format!(
            "#!/bin/sh\necho $$ >> {at}/measuring\nif [ \"$1\" = measure ]; then set -- \"$@\" --replay {at}/recorded.json; fi\nexec {} \"$@\"\n",
            env!("CARGO_BIN_EXE_nvtune"),
            at = machine.folder.path().display()
        );
        machine.write("bin/nvtune", &script);
        fs::set_permissions(machine.path("bin/nvtune"), fs::Permissions::from_mode(0o755)).expect("executable");
        machine.write("recorded.json", RECORDING);
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    /// Starts a server that stays in the foreground; what it says goes into a file.
    fn serve(&mut self, command: &mut Command, log: &str) {
        let log = fs::File::create(self.path(log)).expect("created");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("two of it")).stderr(log);
        self.servers.push(Server { process: command.spawn().expect("it starts") });
    }

    /// A machine that is reached through ssh.
    fn with_sshd() -> Result<Self, String> {
        let (sshd, ssh, keygen) = (find("sshd")?, find("ssh")?, find("ssh-keygen")?);
        let mut machine = Self::new();
        for name in ["host", "user"] {
            succeed(Command::new(&keygen).args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(machine.path(name)));
        }
        let port = free_port();
        let at = machine.folder.path().display().to_string();
        let host_key = fs::read_to_string(machine.path("host.pub")).expect("a key");
        machine.write("known_hosts", &format!("[localhost]:{port} {host_key}"));
        // As a login shell does, this one has its own PATH, and greets.
        machine.write(
            "sshd_config",
            &format!(
                "ListenAddress 127.0.0.1\nPort {port}\nHostKey {at}/host\nAuthorizedKeysFile {at}/user.pub\nStrictModes no\nUsePAM no\n\
                 PasswordAuthentication no\nPidFile none\n\
                 ForceCommand echo Welcome to gpu01; PATH={at}/bin:/usr/bin:/bin; export PATH; exec sh -c \"$SSH_ORIGINAL_COMMAND\"\n"
            ),
        );
        // Where root's sshd puts a part of itself; the package makes it when the service starts.
        let _ = fs::create_dir_all("/run/sshd");
        let mut server = Command::new(sshd);
        machine.serve(server.args(["-D", "-e", "-f"]).arg(machine.path("sshd_config")), "sshd.log");
        wait_until("sshd listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        machine.runner = format!(
            "{} -F none -p {port} -i {at}/user -o BatchMode=yes -o UserKnownHostsFile={at}/known_hosts localhost",
            ssh.display()
        );
        Ok(machine)
    }

    /// A cluster of one node with one place, which is reached through srun.
    fn with_slurm() -> Result<Self, String> {
        let (munged, controller, daemon) = (find("munged")?, find("slurmctld")?, find("slurmd")?);
        let (srun, sinfo) = (find("srun")?, find("sinfo")?);
        let mut machine = Self::new();
        let at = machine.folder.path().display().to_string();
        for name in ["munge", "state", "spool"] {
            fs::create_dir(machine.path(name)).expect("a folder");
        }
        machine.write("munge/key", &"one node, and no secret: ".repeat(8));
        fs::set_permissions(machine.path("munge/key"), fs::Permissions::from_mode(0o400)).expect("set");
        let mut authority = Command::new(munged);
        authority.args(["--foreground", "--force"]);
        for (option, name) in
            [("socket", "socket"), ("key-file", "key"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed")]
        {
            authority.arg(format!("--{option}={at}/munge/{name}"));
        }
        machine.serve(&mut authority, "munged.log");
        wait_until("munged listens", || machine.path("munge/socket").exists());
        let user = succeed(Command::new("id").arg("-un")).stdout;
        let user = user.trim();
        machine.write(
            "slurm.conf",
            &format!(
                "ClusterName=one\nSlurmctldHost=localhost\nSlurmUser={user}\nSlurmdUser={user}\nAuthType=auth/munge\n\
                 AuthInfo=socket={at}/munge/socket\nCredType=cred/munge\nSlurmctldPort={}\nSlurmdPort={}\nStateSaveLocation={at}/state\n\
                 SlurmdSpoolDir={at}/spool\nSlurmctldPidFile={at}/slurmctld.pid\nSlurmdPidFile={at}/slurmd.pid\n\
                 ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSelectType=select/linear\nMpiDefault=none\nReturnToService=2\n\
                 NodeName=localhost NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN\nPartitionName=all Nodes=ALL Default=YES State=UP\n",
                free_port(),
                free_port()
            ),
        );
        machine.environment = vec![("SLURM_CONF", machine.path("slurm.conf"))];
        for (program, arguments) in [(controller, &["-D", "-c"][..]), (daemon, &["-D", "-N", "localhost"])] {
            let log = format!("{}.log", program.file_name().expect("a name").to_string_lossy());
            machine.serve(Command::new(program).args(arguments).env("SLURM_CONF", machine.path("slurm.conf")), &log);
        }
        let idle = |machine: &Self| {
            let mut look = Command::new(&sinfo);
            run(look.args(["-h", "-o", "%T"]).env("SLURM_CONF", machine.path("slurm.conf"))).stdout == "idle\n"
        };
        wait_until("the node is idle", || idle(&machine));
        machine.runner = format!("{} --quiet --chdir=/", srun.display());
        Ok(machine)
    }

    /// nvtune, called as nvcc, on a machine without a GPU that has this one as its runner.
    fn build(&self, project: &Project) -> Command {
        let mut command = project.nvtune(&compile("saxpy.cu", "saxpy.o"));
        self.reach(&mut command);
        command.env("NVTUNE", "measure");
        command
    }

    fn reach(&self, command: &mut Command) {
        let mut path = vec![self.path("bin")];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        command.env("PATH", std::env::join_paths(path).expect("no colons"));
        command.env("NVTUNE_RUNNER", &self.runner).envs(self.environment.iter().map(|(name, path)| (name, path)));
    }

    /// Returns the measuring processes that were started here and have not ended.
    fn measuring(&self) -> Vec<String> {
        let noted = fs::read_to_string(self.path("measuring")).unwrap_or_default();
        noted.lines().filter(|id| Path::new("/proc").join(id).exists()).map(str::to_owned).collect()
    }
}

/// How a machine is reached: the runner's name, and what starts its server.
type Reached = (&'static str, fn() -> Result<Machine, String>);

const SSH: Reached = ("ssh", Machine::with_sshd);
const SRUN: Reached = ("srun", Machine::with_slurm);

/// Calls `check` with each machine that can be had, and keeps in the summary which these were.
fn on_machines(what: &str, machines: &[Reached], check: impl Fn(&Machine)) {
    let mut lines = vec![format!("{what}:")];
    for (runner, start) in machines {
        lines.push(match start() {
            Err(missing) => format!("  {runner}: {missing}"),
            Ok(machine) => {
                check(&machine);
                format!("  {runner}: passes")
            }
        });
    }
    summary::keep(&format!("runners, {what}"), &lines.join("\n"));
}

#[test]
#[ignore = "long: in the full run"]
fn builds_at_once_are_measured_behind_a_real_runner() {
    on_machines("two builds at once", &[SSH, SRUN], |machine| {
        let projects = [(); 2].map(|()| Project::new(&["saxpy.cu"]));
        std::thread::scope(|scope| {
            let builds = projects.each_ref().map(|project| scope.spawn(|| succeed(&mut machine.build(project))));
            for build in builds {
                let said = build.join().expect("it ends").stderr;
                assert!(said.contains(WON) && !said.contains("warning"), "{said}");
            }
        });
    });
}

#[test]
#[ignore = "long: in the full run"]
fn doctor_shows_the_gpu_behind_a_real_runner() {
    on_machines("nvtune doctor", &[SSH, SRUN], |machine| {
        let project = Project::new(&[]);
        let mut doctor = nvtune(&project, &["doctor"]);
        machine.reach(doctor.env("COLUMNS", "1000"));
        let said = run(&mut doctor).stdout;
        assert!(said.contains(&format!("\nrunner  `{}` answers\n", machine.runner)), "{said}");
        assert!(said.contains("\ngpu     NVIDIA H200"), "{said}");
    });
}

#[test]
#[ignore = "long: in the full run"]
fn project_is_tuned_by_several_builds_behind_a_real_runner() {
    on_machines("nvtune tune --jobs 2", &[SSH, SRUN], |machine| {
        let project = Project::new(&["saxpy.cu"]);
        let source = project.read("saxpy.cu");
        project.write("other.cu", &source.replace("saxpy", "other"));
        let entry = |source: &str| {
            serde_json::json!({
                "directory": project.path(""), "file": source, "arguments": ["nvcc", "-arch=sm_90", "-c", source, "-o", format!("{source}.o")],
            })
        };
        let database = serde_json::json!([entry("saxpy.cu"), entry("other.cu")]);
        project.write("compile_commands.json", &database.to_string());
        let mut tune = nvtune(&project, &["tune", "--jobs", "2", "--runner", &machine.runner]);
        machine.reach(&mut tune);
        let ran = succeed(tune.env_remove("NVTUNE_RUNNER"));
        assert!(ran.stderr.contains(WON), "{ran:?}");
        assert!(ran.stderr.contains(&WON.replace("saxpy", "other")), "{ran:?}");
    });
}

#[test]
#[ignore = "long: in the full run"]
fn killed_build_leaves_no_process_behind_a_real_runner() {
    on_machines("a build that is killed", &[SSH, SRUN], |machine| {
        machine.write("recorded.json", &SLOW_RECORDING.replace("LOG", &machine.path("log").display().to_string()));
        let project = Project::new(&["saxpy.cu"]);
        let mut build = machine.build(&project).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        wait_until("a candidate is timed", || {
            fs::read_to_string(machine.path("log")).is_ok_and(|log| log.contains("sample"))
        });
        assert_eq!(machine.measuring().len(), 1);
        build.kill().expect("it runs");
        build.wait().expect("it ends");
        wait_until("the measuring process ends", || machine.measuring().is_empty());
    });
}

#[test]
#[ignore = "long: in the full run"]
fn runner_that_waits_in_a_queue_for_too_long_is_a_warning_and_its_job_ends() {
    on_machines("a queue", &[SRUN], |machine| {
        let (srun, _) = machine.runner.split_once(" --quiet").expect("the command of srun");
        let mut other = Command::new(srun);
        other.args(["--quiet", "sh", "-c", "echo taken; cat"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut other =
            other.envs(machine.environment.iter().map(|(name, path)| (name, path))).spawn().expect("it starts");
        let mut word = [0; 6];
        other.stdout.as_mut().expect("a pipe").read_exact(&mut word).expect("the node is taken");
        let project = Project::new(&["saxpy.cu"]);
        let said = succeed(machine.build(&project).env("NVTUNE_WAIT", "2")).stderr;
        assert!(said.contains("nvtune warning : ") && said.contains("predicted"), "{said}");
        drop(other.stdin.take());
        assert!(other.wait().expect("it ends").success());
        let jobs = || {
            let mut look = Command::new(Path::new(srun).with_file_name("squeue"));
            run(look.arg("-h").envs(machine.environment.iter().map(|(name, path)| (name, path)))).stdout
        };
        wait_until("no job is left", || jobs().is_empty());
        assert!(machine.measuring().is_empty());
    });
}

#include <fcntl.h>
#include <netdb.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/elf_file.h"
#include "base/host_port.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/file_output.h"
#include "client/cli/own_directory.h"
#include "client/cli/server_address.h"
#include "client/cli/server_client.h"
#include "client/cli/stop_signal.h"
#include "client/cli/supervisor.h"
#include "client/cli/up_identities.h"
#include "proto/security/exposure.h"
#include "proto/security/metrics_flags.h"

namespace regatta::cli {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::string dir;
  std::string listen;
  std::string program_dir;
  bool no_agent = false;
  bool no_rebuilds = false;
  bool tls = false;
  bool insecure_plaintext = false;
  bool no_auto_approve = false;
  std::string fleet_config;
  std::string devices;  // the agent's default where empty
  std::string cuda_driver;
  std::string metrics;     // HOST:PORT of the server's page; "": none
  std::string log_format;  // of the daemons; "": as this program's
};

// FailedPrecondition naming the address when it cannot be listened on; else the
// port, chosen by the system when `port` is 0.
absl::StatusOr<int> ProbePort(const std::string& host, int port) {
  const auto listening = ListenOn(absl::StrCat(host, ":", port));
  if (listening.ok()) return listening->port;
  return absl::FailedPreconditionError(
      absl::StrCat(std::string(listening.status().message()),
                   "; choose another address with --listen HOST:PORT"));
}

// The server's port; the next one is the tracker's, and with certificates the
// one after is where newcomers join: `count` in all.
absl::StatusOr<int> ProbePorts(const std::string& host, int port, int count) {
  for (int attempt = 0;; ++attempt) {
    ASSIGN_OR_RETURN(int first, ProbePort(host, port));
    absl::Status all = absl::OkStatus();
    for (int i = 1; i < count && all.ok(); ++i) {
      all = first + i > 65535 ? absl::FailedPreconditionError("no next port")
                              : ProbePort(host, first + i).status();
    }
    if (all.ok()) return first;
    if (port != 0 || attempt == 20) return all;
  }
}

bool Accepts(const std::string& host, int port) {
  const auto addresses = ResolveToListen(host, port);
  if (!addresses.ok()) return false;
  const addrinfo& at = **addresses;
  const UniqueFd fd(socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(fd.get(), at.ai_addr, at.ai_addrlen) == 0;
}

absl::Status MakeDirectory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && !fs::is_directory(path, error)) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (!error && access(path.c_str(), W_OK | X_OK) != 0) {
    error = std::error_code(errno, std::generic_category());
  }
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot keep state in ", path, ": ", error.message(),
                   "; choose a folder of your own with --dir"));
}

// Held for the life of the process: one `up` per folder.
absl::StatusOr<UniqueFd> LockDirectory(const std::string& dir) {
  const std::string path = dir + "/up.lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (fd.get() < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("another `regatta up` already runs in ", dir,
                     "; stop it, or choose another folder with --dir"));
  }
  return fd;
}

// How long after its start the agent finds its devices, and how its warnings of
// those that it does not serve are known (devices/provider_list.cc).
constexpr absl::Duration kAgentStarts = absl::Minutes(1);
constexpr const char* kNotServed[] = {"not served: ", "no devices of kind "};

class Fleet {
 public:
  // `identities`: nullptr for plain text.
  Fleet(const Flags& flags, std::string host, int server_port,
        UpIdentities* identities)
      : flags_(flags),
        identities_(identities),
        programs_(flags.program_dir.empty() ? OwnDirectory()
                                            : flags.program_dir),
        host_(std::move(host)),
        server_port_(server_port),
        supervisor_(RealClock()) {}

  std::string ServerAt() const {
    return absl::StrCat(host_, ":", server_port_);
  }
  std::string TrackerAt() const {
    return absl::StrCat(host_, ":", server_port_ + 1);
  }
  std::string EnrolAt() const {
    return absl::StrCat(host_, ":", server_port_ + 2);
  }
  std::string LogAt() const { return flags_.dir + "/tuning.db"; }

  absl::Status Start(const std::function<bool()>& stop) {
    std::vector<std::string> tracker = {"--listen", TrackerAt(), "--state",
                                        flags_.dir + "/tracker"};
    if (identities_ != nullptr) {
      tracker.insert(tracker.end(), {"--authority", identities_->authority(),
                                     "--enrol", EnrolAt()});
    }
    if (!flags_.no_auto_approve) tracker.push_back("--auto-approve-local");
    if (!flags_.fleet_config.empty()) {
      tracker.insert(tracker.end(), {"--fleet-config", flags_.fleet_config});
    }
    RETURN_IF_ERROR(supervisor_.Start(
        Daemon("regatta-tracker", std::move(tracker),
               [this] { return Accepts(host_, server_port_ + 1); }),
        stop));
    std::vector<std::string> server = {"--listen",  ServerAt(), "--tracker",
                                       TrackerAt(), "--log",    LogAt()};
    if (flags_.no_rebuilds) server.push_back("--no-rebuilds");
    RETURN_IF_ERROR(supervisor_.Start(
        Daemon("regatta-server", std::move(server),
               [this] { return Accepts(host_, server_port_); }),
        stop));
    if (flags_.no_agent) return absl::OkStatus();
    const SteadyTime started = RealClock().Steady();
    std::vector<std::string> arguments = {
        "--tracker", TrackerAt(), "--state", flags_.dir + "/agent",
        // Boards elsewhere choose whether they trust it.
        "--role", "device,builder"};
    if (!flags_.devices.empty()) {
      arguments.insert(arguments.end(), {"--devices", flags_.devices});
    }
    agent_log_seen_ = LogBytes(AgentLog());
    agent_started_ = started;
    if (!flags_.cuda_driver.empty()) {
      arguments.insert(arguments.end(), {"--cuda-driver", flags_.cuda_driver});
    }
    DaemonSpec agent =
        Daemon("regatta-agent", std::move(arguments),
               // It listens on nothing; one that is misconfigured ends at once.
               [started] {
                 return RealClock().Steady() - started > absl::Seconds(1);
               });
    // The first lets a candidate end, the second does not wait for it.
    agent.stop_signals = {SIGTERM, SIGINT};
    return supervisor_.Start(std::move(agent), stop);
  }

  void Tend() {
    if (identities_ != nullptr) identities_->Tend();
    RepeatAgentWarnings();
    supervisor_.Tend([](const std::string& line) { LOG(kWarning) << line; });
  }
  void Stop() { supervisor_.StopAll(); }

 private:
  // The server's page is where it was asked for, the others' on the next
  // ports; port 0 is a free one for each.
  std::string MetricsOf(const std::string& daemon) const {
    const auto parts = SplitHostPort(flags_.metrics);
    if (!parts.ok()) return "";
    const int next = daemon == "regatta-server"    ? 0
                     : daemon == "regatta-tracker" ? 1
                                                   : 2;
    return absl::StrCat(parts->first, ":",
                        parts->second == 0 ? 0 : parts->second + next);
  }

  DaemonSpec Daemon(const std::string& name, std::vector<std::string> arguments,
                    std::function<bool()> ready) const {
    if (identities_ != nullptr) {
      arguments.insert(arguments.end(),
                       {"--tls", identities_->Folder(std::string(
                                     absl::StripPrefix(name, "regatta-")))});
    }
    if (flags_.insecure_plaintext) {
      arguments.push_back("--insecure-plaintext");
    }
    if (const std::string page = MetricsOf(name); !page.empty()) {
      arguments.insert(arguments.end(), {"--metrics", page});
    }
    if (!flags_.log_format.empty()) {
      arguments.insert(arguments.end(), {"--log-format", flags_.log_format});
    }
    return {.name = name,
            .program = programs_ + "/" + name,
            .arguments = std::move(arguments),
            .log_path = absl::StrCat(flags_.dir, "/logs/", name, ".log"),
            .ready = std::move(ready)};
  }

  std::string AgentLog() const {
    return flags_.dir + "/logs/regatta-agent.log";
  }
  // 0 for a file that is not there.
  static int64_t LogBytes(const std::string& path) {
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    return error ? 0 : static_cast<int64_t>(bytes);
  }
  // What was asked for and is not served stands in the agent's log only, where
  // nobody looks.
  void RepeatAgentWarnings() {
    if (!agent_started_.has_value() ||
        RealClock().Steady() - *agent_started_ > kAgentStarts ||
        LogBytes(AgentLog()) <= agent_log_seen_) {
      return;
    }
    std::ifstream log(AgentLog());
    log.seekg(agent_log_seen_);
    for (std::string line; std::getline(log, line) && !log.eof();) {
      agent_log_seen_ += static_cast<int64_t>(line.size()) + 1;
      const bool telling = std::any_of(
          std::begin(kNotServed), std::end(kNotServed),
          [&](const char* mark) { return absl::StrContains(line, mark); });
      if (telling) LOG(kWarning) << "the agent says: " << line;
    }
  }

  const Flags& flags_;
  UpIdentities* const identities_;
  const std::string programs_;
  const std::string host_;
  const int server_port_;
  Supervisor supervisor_;
  std::optional<SteadyTime> agent_started_;
  int64_t agent_log_seen_ = 0;  // bytes
};

absl::Status Serve(Flags flags) {
  if (flags.dir.empty()) flags.dir = DefaultStateDir();
  auto listen = SplitHostPort(flags.listen);
  if (!listen.ok()) return Annotate(listen.status(), "--listen");
  const auto& [host, wanted_port] = *listen;
  const int ports = flags.tls ? 3 : 2;
  if (wanted_port + ports - 1 > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen: port ", wanted_port, " leaves none for the tracker, which ",
        flags.tls ? "takes the next two" : "takes the next one"));
  }
  RETURN_IF_ERROR(
      Annotate(CheckExposure(flags.listen, flags.tls, flags.insecure_plaintext),
               "--listen"));
  if (!flags.metrics.empty()) {
    RETURN_IF_ERROR(CheckMetrics({.listen = flags.metrics}));
    if (SplitHostPort(flags.metrics)->second > 65533) {
      return absl::InvalidArgumentError(
          "--metrics: three ports are taken from this one on; name a lower "
          "one");
    }
  }
  if (!flags.cuda_driver.empty()) {
    RETURN_IF_ERROR(
        Annotate(CheckSharedLibrary(flags.cuda_driver), "--cuda-driver"));
  }
  // Asked before anything is made: a taken port changes nothing.
  ASSIGN_OR_RETURN(int port, ProbePorts(host, wanted_port, ports));
  RETURN_IF_ERROR(MakeDirectory(flags.dir));
  for (const char* sub : {"/logs", "/tracker", "/agent"}) {
    RETURN_IF_ERROR(MakeDirectory(flags.dir + sub));
  }
  ASSIGN_OR_RETURN(UniqueFd lock, LockDirectory(flags.dir));
  // One that was killed left its address behind.
  std::error_code ignored;
  fs::remove(AddressFile(flags.dir), ignored);

  std::optional<UpIdentities> identities;
  if (flags.tls) {
    ASSIGN_OR_RETURN(identities, UpIdentities::Prepare(flags.dir, RealClock()));
  }
  const std::atomic<bool>& stop = StopRequested();
  Fleet fleet(flags, host, port, identities ? &*identities : nullptr);
  const absl::Status started = fleet.Start([&stop] { return stop.load(); });
  if (!started.ok()) {
    fleet.Stop();
    return absl::IsCancelled(started) ? absl::OkStatus() : started;
  }
  const std::string admin = identities ? identities->Folder("admin") : "";
  RETURN_IF_ERROR(WriteFileAtomically(
      AddressFile(flags.dir),
      absl::StrCat(fleet.ServerAt(), "\n", admin, identities ? "\n" : ""),
      FileUse::kData));
  std::cout << "server   " << fleet.ServerAt() << "\n"
            << "tracker  " << fleet.TrackerAt()
            << "   (agents: regatta-agent --tracker " << fleet.TrackerAt()
            << ")\n"
            << "log      " << fleet.LogAt() << "\n"
            << "logs of the daemons in " << flags.dir
            << "/logs; Ctrl-C stops all\n";
  if (identities) {
    std::cout << "boards   join by the token of `regatta certs token --role "
                 "agent --authority "
              << identities->authority() << "`: regatta-agent --tracker "
              << fleet.TrackerAt() << " --tls DIR --join @FILE\n";
  }
  if (flags.dir != DefaultStateDir()) {
    std::cout << "commands elsewhere find it by: export REGATTA_SERVER="
              << fleet.ServerAt() << (identities ? " REGATTA_TLS=" + admin : "")
              << "\n";
  }
  std::cout << std::flush;
  while (!stop) {
    fleet.Tend();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  fs::remove(AddressFile(flags.dir), ignored);
  fleet.Stop();
  return absl::OkStatus();
}

int Run(const Flags& flags) {
  const absl::Status status = Serve(flags);
  return status.ok() ? kExitDone : Fail(status);
}

}  // namespace

AddedCommand AddUp(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "up",
      "Run server, tracker and this machine's agent; Ctrl-C stops all cleanly");
  command->add_option("--dir", flags->dir,
                      "State folder: tuning log, logs, address. Default: "
                      "$XDG_STATE_HOME/regatta, else ~/.local/state/regatta");
  flags->listen = std::string(kDefaultServer);
  command
      ->add_option("--listen", flags->listen,
                   "Address of the server, HOST:PORT; the tracker takes the "
                   "next port, with --tls the next two; port 0 chooses free "
                   "ones")
      ->capture_default_str();
  command->add_flag("--tls", flags->tls,
                    "Certificates for all: makes an authority in the state "
                    "folder the first time, and the daemons' certificates and "
                    "yours");
  command->add_flag("--insecure-plaintext", flags->insecure_plaintext,
                    "Without --tls, also listen where other machines can reach "
                    "it: whoever does may do everything");
  CLI::Option* no_agent = command->add_flag(
      "--no-agent", flags->no_agent, "Start no agent: boards are elsewhere");
  command
      ->add_option("--devices", flags->devices,
                   "Kinds of devices that this machine's agent serves, "
                   "separated by commas: cpu, opencl, cuda. Default: cpu")
      ->type_name("KINDS")
      ->excludes(no_agent);
  command
      ->add_option("--cuda-driver", flags->cuda_driver,
                   "Library that this machine's agent uses as CUDA's driver, "
                   "such as libregatta-cuda-sim.so, which simulates GPUs")
      ->check(CLI::ExistingFile)
      ->type_name("FILE")
      ->excludes(no_agent);
  command->add_flag("--no-rebuilds", flags->no_rebuilds,
                    "The server runs no compiler: it does not find out whether "
                    "answers of another compiler version are exact");
  command->add_flag("--no-auto-approve", flags->no_auto_approve,
                    "Boards on this machine wait for approval, too");
  command
      ->add_option("--fleet-config", flags->fleet_config,
                   "The tracker's file of boards, power hooks and users")
      ->type_name("FILE");
  command
      ->add_option("--metrics", flags->metrics,
                   "Address of the server's page of metrics on this machine; "
                   "the tracker's and the agent's take the next two ports; "
                   "port 0 chooses free ones, which the logs tell")
      ->type_name("HOST:PORT");
  command
      ->add_option("--log-format", flags->log_format,
                   "How the daemons write their logs: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("FORMAT");
  command->add_option("--program-dir", flags->program_dir,
                      "Folder of the daemons' programs. Default: this "
                      "program's");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli

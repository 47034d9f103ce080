#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
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

namespace regatta::cli {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::string dir;
  std::string listen;
  std::string program_dir;
  bool no_agent = false;
  bool no_rebuilds = false;
  std::string devices;  // the agent's default where empty
  std::string cuda_driver;
};

absl::StatusOr<sockaddr_in> Resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (rc != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen: cannot resolve '", host, "': ", gai_strerror(rc)));
  }
  sockaddr_in address;
  std::memcpy(&address, found->ai_addr, sizeof(address));
  freeaddrinfo(found);
  address.sin_port = htons(port);
  return address;
}

// FailedPrecondition naming the address when it cannot be listened on; else the
// port, chosen by the system when `port` is 0.
absl::StatusOr<int> ProbePort(const std::string& host, int port) {
  ASSIGN_OR_RETURN(sockaddr_in address, Resolve(host, port));
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
          0 ||
      listen(fd.get(), 1) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot listen on ", host, ":", port, ": ", std::strerror(errno),
        "; choose another address with --listen HOST:PORT"));
  }
  socklen_t size = sizeof(address);
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

// The server's port and the tracker's, which is the next one.
absl::StatusOr<int> ProbePortPair(const std::string& host, int port) {
  for (int attempt = 0;; ++attempt) {
    ASSIGN_OR_RETURN(int server_port, ProbePort(host, port));
    auto tracker_port = server_port == 65535
                            ? absl::FailedPreconditionError("no next port")
                            : ProbePort(host, server_port + 1);
    if (tracker_port.ok()) return server_port;
    if (port != 0 || attempt == 20) return tracker_port.status();
  }
}

bool Accepts(const std::string& host, int port) {
  auto address = Resolve(host, port);
  if (!address.ok()) return false;
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(fd.get(), reinterpret_cast<sockaddr*>(&*address),
                 sizeof(*address)) == 0;
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
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
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

class Fleet {
 public:
  Fleet(const Flags& flags, std::string host, int server_port)
      : flags_(flags),
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
  std::string LogAt() const { return flags_.dir + "/tuning.db"; }

  absl::Status Start(const std::function<bool()>& stop) {
    RETURN_IF_ERROR(supervisor_.Start(
        Daemon("regatta-tracker",
               {"--listen", TrackerAt(), "--state", flags_.dir + "/tracker"},
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
    if (!flags_.cuda_driver.empty()) {
      arguments.insert(arguments.end(), {"--cuda-driver", flags_.cuda_driver});
    }
    return supervisor_.Start(
        Daemon("regatta-agent", std::move(arguments),
               // It listens on nothing; one that is misconfigured ends at once.
               [started] {
                 return RealClock().Steady() - started > absl::Seconds(1);
               }),
        stop);
  }

  void Tend() {
    supervisor_.Tend([](const std::string& line) { LOG(kWarning) << line; });
  }
  void Stop() { supervisor_.StopAll(); }

 private:
  DaemonSpec Daemon(const std::string& name, std::vector<std::string> arguments,
                    std::function<bool()> ready) const {
    return {.name = name,
            .program = programs_ + "/" + name,
            .arguments = std::move(arguments),
            .log_path = absl::StrCat(flags_.dir, "/logs/", name, ".log"),
            .ready = std::move(ready)};
  }

  const Flags& flags_;
  const std::string programs_;
  const std::string host_;
  const int server_port_;
  Supervisor supervisor_;
};

absl::Status Serve(Flags flags) {
  if (flags.dir.empty()) flags.dir = DefaultStateDir();
  auto listen = SplitHostPort(flags.listen);
  if (!listen.ok()) return Annotate(listen.status(), "--listen");
  const auto& [host, wanted_port] = *listen;
  if (wanted_port == 65535) {
    return absl::InvalidArgumentError(
        "--listen: port 65535 leaves none for the tracker, which takes the "
        "next one");
  }
  // Asked before anything is made: a taken port changes nothing.
  ASSIGN_OR_RETURN(int port, ProbePortPair(host, wanted_port));
  RETURN_IF_ERROR(MakeDirectory(flags.dir));
  for (const char* sub : {"/logs", "/tracker", "/agent"}) {
    RETURN_IF_ERROR(MakeDirectory(flags.dir + sub));
  }
  ASSIGN_OR_RETURN(UniqueFd lock, LockDirectory(flags.dir));
  // One that was killed left its address behind.
  std::error_code ignored;
  fs::remove(AddressFile(flags.dir), ignored);

  const std::atomic<bool>& stop = StopRequested();
  Fleet fleet(flags, host, port);
  const absl::Status started = fleet.Start([&stop] { return stop.load(); });
  if (!started.ok()) {
    fleet.Stop();
    return absl::IsCancelled(started) ? absl::OkStatus() : started;
  }
  RETURN_IF_ERROR(WriteFileAtomically(AddressFile(flags.dir),
                                      fleet.ServerAt() + "\n",
                                      /*executable=*/false));
  std::cout << "server   " << fleet.ServerAt() << "\n"
            << "tracker  " << fleet.TrackerAt()
            << "   (agents: regatta-agent --tracker " << fleet.TrackerAt()
            << ")\n"
            << "log      " << fleet.LogAt() << "\n"
            << "logs of the daemons in " << flags.dir
            << "/logs; Ctrl-C stops all\n";
  if (flags.dir != DefaultStateDir()) {
    std::cout << "commands elsewhere find it by: export REGATTA_SERVER="
              << fleet.ServerAt() << "\n";
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
                   "next port; port 0 chooses two free ones")
      ->capture_default_str();
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
  command->add_option("--program-dir", flags->program_dir,
                      "Folder of the daemons' programs. Default: this "
                      "program's");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli

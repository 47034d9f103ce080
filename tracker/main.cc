// regatta-tracker: owns boards, leases and the queue of a fleet.
#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>

#include "CLI/CLI.hpp"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "tracker/file_fleet_store.h"
#include "tracker/tracker_options.h"
#include "tracker/tracker_service.h"

namespace regatta {
namespace {

struct Flags {
  std::string listen = "127.0.0.1:7471";
  std::string state;
  TrackerOptions options;
};

// A flag of whole milliseconds for a duration.
void AddMilliseconds(CLI::App* app, const std::string& name,
                     absl::Duration* value, const std::string& help) {
  app->add_option_function<int64_t>(
         name, [value](int64_t ms) { *value = absl::Milliseconds(ms); }, help)
      ->check(CLI::Range(int64_t{1}, int64_t{86'400'000}))
      ->type_name("MS")
      ->default_str(std::to_string(absl::ToInt64Milliseconds(*value)));
}

void AddFlags(CLI::App* app, Flags* flags) {
  app->add_option("--listen", flags->listen,
                  "Address to listen on, HOST:PORT; port 0 picks a free one")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app->add_option("--state", flags->state,
                  "Folder of the tracker's own file; made when missing")
      ->type_name("DIR")
      ->required();
  TrackerOptions* options = &flags->options;
  AddMilliseconds(app, "--heartbeat-ms", &options->heartbeat,
                  "How often agents report, milliseconds");
  AddMilliseconds(app, "--lease-ms", &options->lease,
                  "How long an assignment stays an agent's after each "
                  "heartbeat, milliseconds");
  AddMilliseconds(app, "--accept-ms", &options->accept,
                  "Deadline for an agent to accept an assignment, "
                  "milliseconds");
  AddMilliseconds(app, "--suspect-ms", &options->suspect,
                  "Silence after which an agent is suspect, milliseconds");
  AddMilliseconds(app, "--lost-ms", &options->lost,
                  "Silence after which an agent's work goes to others, "
                  "milliseconds");
  AddMilliseconds(app, "--restart-window-ms", &options->restart_window,
                  "After a restart, how long to wait at most for agents that "
                  "held work, milliseconds");
  app->add_option("--max-attempts", options->max_attempts,
                  "Lost attempts after which a trial ends as agent_lost, "
                  "count")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
}

int Serve(const Flags& flags) {
  // Agents hold one connection each.
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  // Blocked in every thread, taken by sigwait below.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  if (absl::Status valid = Validate(flags.options); !valid.ok()) {
    std::cerr << "regatta-tracker: " << valid.message() << std::endl;
    return 2;
  }
  auto store = FileFleetStore::Open(flags.state);
  if (!store.ok()) {
    std::cerr << "regatta-tracker: " << store.status().message() << std::endl;
    return 1;
  }
  std::random_device entropy;
  Random random((uint64_t{entropy()} << 32) | entropy());
  auto service = TrackerService::Start(flags.listen, flags.options, RealClock(),
                                       random, **store);
  if (!service.ok()) {
    std::cerr << "regatta-tracker: " << service.status().message() << std::endl;
    return 1;
  }
  std::cout << "listening on " << (*service)->address() << std::endl;
  int signal = 0;
  sigwait(&signals, &signal);
  LOG(kInfo) << "stopping on " << (signal == SIGINT ? "SIGINT" : "SIGTERM");
  (*service)->Stop(absl::Seconds(1));
  return 0;
}

}  // namespace
}  // namespace regatta

int main(int argc, char** argv) {
  regatta::SetLogProgram("regatta-tracker");
  regatta::Flags flags;
  CLI::App app(
      "Regatta's tracker: hands work to boards and results to the "
      "server",
      "regatta-tracker");
  regatta::AddFlags(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return regatta::Serve(flags);
}

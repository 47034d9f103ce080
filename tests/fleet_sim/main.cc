// A fleet of thousands of simulated boards against a real tracker and a real
// server: attaches them all, keeps them busy, breaks all their connections at
// once, and checks that nothing was lost. Prints what it does, one table and
// which targets were missed; exits 1 when a promise was broken, or a phase did
// not end.
//
//   fleet_sim                                   100 boards, a minute and a half
//   fleet_sim --boards 10000 --seconds 600
//   fleet_sim --boards 1000 --latency-ms 40 --restarts 6 --cuts 30 --seed 7
#include <sys/resource.h>

#include <cstdint>
#include <iostream>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "base/lock_checks.h"
#include "base/log.h"
#include "base/scheduling.h"
#include "tests/fleet_sim/campaign.h"
#include "tests/support/process.h"

namespace regatta::fleet_sim {
namespace {

void AddSeconds(CLI::App* app, const std::string& name, absl::Duration* value,
                const std::string& help) {
  app->add_option_function<double>(
         name, [value](double seconds) { *value = absl::Seconds(seconds); },
         help)
      ->check(CLI::Range(0.0, 86'400.0))
      ->type_name("S")
      ->default_str(std::to_string(absl::ToInt64Seconds(*value)));
}

void AddMilliseconds(CLI::App* app, const std::string& name,
                     absl::Duration* value, const std::string& help) {
  app->add_option_function<int64_t>(
         name, [value](int64_t ms) { *value = absl::Milliseconds(ms); }, help)
      ->check(CLI::Range(int64_t{0}, int64_t{600'000}))
      ->type_name("MS")
      ->default_str(std::to_string(absl::ToInt64Milliseconds(*value)));
}

void AddFlags(CLI::App* app, CampaignOptions* options) {
  app->add_option("--boards", options->boards,
                  "Boards, each its own connection")
      ->check(CLI::Range(1, 15'000))
      ->capture_default_str();
  app->add_option("--boards-per-class", options->boards_per_class,
                  "Boards of one device class")
      ->check(CLI::Range(1, 15'000))
      ->capture_default_str();
  app->add_option("--credit", options->credit,
                  "Assignments a board holds at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app->add_option("--workloads", options->workloads,
                  "Tasks of a job; every class has one job")
      ->check(CLI::Range(1, 4))
      ->capture_default_str();
  app->add_option("--strategy", options->strategy, "The jobs' search strategy")
      ->capture_default_str();
  app->add_option("--trials", options->trials,
                  "Budget of each task; 0: by time, for as long as this runs")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  AddSeconds(app, "--seconds", &options->load, "How long the load is measured");
  AddSeconds(app, "--after", &options->after,
             "How long again when all boards are back");
  AddSeconds(app, "--limit", &options->limit,
             "How long attaching and coming back may take at most");
  app->add_flag("!--no-cut", options->cut_all, "Break no connections at once");
  app->add_flag("--kill-tracker", options->kill_tracker,
                "Kill the tracker, too, and start it again");
  app->add_flag("--tls", options->tls,
                "Mutual TLS, each board with a certificate of its own");
  AddMilliseconds(app, "--heartbeat-ms", &options->heartbeat,
                  "The tracker's heartbeat; leases and deadlines follow");
  WorldOptions* world = &options->world;
  AddMilliseconds(app, "--trial-ms", &world->habits.trial,
                  "How long a trial takes on a board, on average");
  app->add_option("--failures", world->habits.failures,
                  "Share of schedules that fail")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  AddSeconds(app, "--boot-over", &world->boot_over,
             "Boards start spread over this time");
  AddMilliseconds(app, "--latency-ms", &world->latency,
                  "Added to every message each way, on average");
  app->add_option("--restarts", world->restarts_per_hour,
                  "How often a board's agent is killed, times an hour")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app->add_option("--cuts", world->cuts_per_hour,
                  "How often a board's connection breaks, times an hour")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app->add_option("--seed", world->seed, "Of everything random")
      ->capture_default_str();
  app->add_option("--dir", options->dir,
                  "Folder of log and state; kept. Default: one that is removed")
      ->type_name("DIR");
}

int Main(int argc, char** argv) {
  SetLogProgram("fleet_sim");
  SkipLockChecks();
  YieldToOthers();
  SetLogThreshold(LogLevel::kError);  // thousands of agents' lines
  CampaignOptions options;
  CLI::App app("Simulates a fleet of boards against a real tracker and server",
               "fleet_sim");
  AddFlags(&app, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  // Each board has one connection, and one file more for its certificate; while
  // a new one is made the old one may still be open.
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (static_cast<rlim_t>(options.boards) * (options.tls ? 2 : 1) + 500 >
        files.rlim_max) {
      std::cerr << "fleet_sim: " << options.boards
                << " boards need more open files than the " << files.rlim_max
                << " that this user may have (ulimit -Hn)" << std::endl;
      return 1;
    }
  }
  std::optional<testing::TempDir> temporary;
  if (options.dir.empty()) options.dir = temporary.emplace().path();
  const absl::Status status = Campaign(options).Run();
  if (status.ok()) return 0;
  std::cerr << "fleet_sim: " << status.message() << std::endl;
  return 1;
}

}  // namespace
}  // namespace regatta::fleet_sim

int main(int argc, char** argv) { return regatta::fleet_sim::Main(argc, argv); }

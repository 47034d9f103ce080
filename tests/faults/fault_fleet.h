// Real daemons on loopback with short times, so that a test need not wait a
// minute to see a board lost: heartbeats every 0.3 s, suspect after 1 s, lost
// and leases over after 2.5 s.
#ifndef REGATTA_TESTS_FAULTS_FAULT_FLEET_H_
#define REGATTA_TESTS_FAULTS_FAULT_FLEET_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/daemons.h"
#include "tests/support/process.h"

namespace regatta::faults {

using testing::UsableCores;

// Of every agent here.
inline constexpr char kFaultsClass[] = "faults-1c";

// Milliseconds, as the tracker's flags.
struct FaultTimes {
  int heartbeat = 300;
  int suspect = 1000;
  int lost = 2500;
  int lease = 2500;
};

class FaultFleet {
 public:
  // Tracker and server; further words of the server's command line.
  explicit FaultFleet(const FaultTimes& times = {},
                      std::vector<std::string> server_arguments = {});

  // An agent with these of the machine's processors; dials `tracker`, or the
  // tracker itself. Again: of the agent that ended, as it was added first.
  testing::Process& StartAgent(const std::string& id, const std::string& cores,
                               const std::string& tracker = "");
  testing::Daemons& daemons() { return daemons_; }
  testing::Process& tracker() { return daemons_.process("tracker"); }
  std::string tracker_address() const { return daemons_.tracker(); }

  // Of the board, as `regatta devices` shows it: presence, state ...; null
  // while it is not known.
  nlohmann::json Device(const std::string& id) const;
  std::string Field(const std::string& id, const std::string& field) const;
  bool Becomes(const std::string& id, const std::string& field,
               const std::string& value,
               absl::Duration limit = absl::Seconds(30)) const;

  // Runs beside the test; ends with ExpectDone.
  void Tune(const std::string& workload, int trials);
  // What `regatta jobs` says of it; null: no answer now.
  nlohmann::json Job() const;
  // New trials of it so far; -1: no answer now.
  int64_t Trials() const;
  bool AwaitTrials(int64_t count,
                   absl::Duration limit = absl::Seconds(60)) const;
  // The job ends as it should, and the log has each of its trials once; none is
  // lost where `losses` says so. Then everything is stopped and every agent's
  // spool agrees with the log.
  enum class Losses { kAllowed, kNone };
  void ExpectDone(Losses losses);

  testing::ProcessResult Run(std::vector<std::string> arguments) const {
    return daemons_.Run(std::move(arguments));
  }
  std::string Said() const { return daemons_.Said(); }

 private:
  const testing::TempDir dir_;
  testing::Daemons daemons_;
  std::unique_ptr<testing::Process> tune_;
  std::vector<std::string> agents_;
  std::string workload_;
  int trials_ = 0;
};

}  // namespace regatta::faults

#endif  // REGATTA_TESTS_FAULTS_FAULT_FLEET_H_

// Real daemons on loopback with short times, so that a test need not wait a
// minute to see a board lost: heartbeats every 0.3 s, suspect after 1 s, lost
// and leases over after 2.5 s.
#ifndef REGATTA_TESTS_FAULTS_FAULT_FLEET_H_
#define REGATTA_TESTS_FAULTS_FAULT_FLEET_H_

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace regatta::faults {

// Of every agent here.
inline constexpr char kFaultsClass[] = "faults-1c";

// Processors that tests may use, as words of --cores.
std::vector<std::string> UsableCores();

// Milliseconds, as the tracker's flags.
struct FaultTimes {
  int heartbeat = 300;
  int suspect = 1000;
  int lost = 2500;
  int lease = 2500;
};

class FaultFleet {
 public:
  // Tracker and server.
  explicit FaultFleet(const FaultTimes& times = {});
  // SIGTERM to all.
  ~FaultFleet();

  // An agent with the last of `cores`; dials `tracker`, or the tracker itself.
  testing::Process& StartAgent(const std::string& id, const std::string& cores,
                               const std::string& tracker = "");
  std::string AgentState(const std::string& id) const {
    return dir_.path() + "/" + id;
  }
  testing::Process& agent(const std::string& id) { return *agents_.at(id); }
  testing::Process& tracker() { return *tracker_; }
  std::string tracker_address() const;

  // Of the board, as `regatta devices` shows it: presence, state ...; "" while
  // it is not known.
  std::string Field(const std::string& id, const std::string& field) const;
  bool Becomes(const std::string& id, const std::string& field,
               const std::string& value,
               absl::Duration limit = absl::Seconds(30)) const;

  // Runs beside the test; ends with ExpectDone.
  void Tune(const std::string& workload, int trials);
  // New trials of it so far.
  int64_t Trials() const;
  bool AwaitTrials(int64_t count,
                   absl::Duration limit = absl::Seconds(60)) const;
  // The job ends as it should, and the log has each of its trials once; none is
  // lost where `losses` says so. Then everything is stopped and every agent's
  // spool agrees with the log.
  enum class Losses { kAllowed, kNone };
  void ExpectDone(Losses losses);

  testing::ProcessResult Run(std::vector<std::string> arguments) const;
  std::string Said();  // by the daemons

 private:
  void Stop();

  testing::TempDir dir_;
  int tracker_port_, server_port_;
  std::unique_ptr<testing::Process> tracker_, server_, tune_;
  std::map<std::string, std::unique_ptr<testing::Process>> agents_;
  std::string workload_;
  int trials_ = 0;
};

}  // namespace regatta::faults

#endif  // REGATTA_TESTS_FAULTS_FAULT_FLEET_H_

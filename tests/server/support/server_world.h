// A server with its log and a simulated fleet, on a fake clock, stepped by
// hand.
#ifndef REGATTA_TESTS_SERVER_SUPPORT_SERVER_WORLD_H_
#define REGATTA_TESTS_SERVER_SUPPORT_SERVER_WORLD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/job/job_manager.h"
#include "storage/tuning_log.h"
#include "tests/server/support/crashing_log.h"
#include "tests/server/support/simulated_fleet.h"
#include "tests/server/support/spaces.h"

namespace regatta::testing {

// How long a schedule "takes": a bowl over the knobs around a goal that the
// seed picks, for any workload on kTargetText or kOtherTargetText.
class Landscapes {
 public:
  explicit Landscapes(uint64_t seed) : seed_(seed) {}
  int64_t TimeNs(const v1::TrialSpec& spec);
  std::shared_ptr<const Space> SpaceFor(const std::string& workload,
                                        const std::string& target, int threads);

 private:
  uint64_t seed_;
  std::map<std::string, std::shared_ptr<const Space>> spaces_;
  std::map<std::string, Schedule> goals_;
};

class ServerWorld {
 public:
  // One board of kClass, unless `boards` is false.
  explicit ServerWorld(SimulatedFleet::Options options = {},
                       bool boards = true);
  ~ServerWorld();

  FakeClock& clock() { return clock_; }
  SimulatedFleet& fleet() { return *fleet_; }
  CrashingLog& log() { return *crashing_; }
  TuningLog& plain_log() { return *log_; }
  JobManager& jobs() { return *jobs_; }
  Landscapes& landscapes() { return landscapes_; }

  // Starts the server's objects from the log and connects them.
  void Start();
  // Kills and starts it again, until no start crashes.
  void Restart();
  // The server is gone; what it had not written is lost.
  void Kill();

  v1::SubmitJobRequest Request(const std::string& workload, int64_t trials);
  // Submits; the test fails when it is refused.
  int64_t Submit(const v1::SubmitJobRequest& request);
  // Lets boards and server work until the job has ended or paused; restarts the
  // server when the log crashes it. False: `steps` were not enough.
  bool RunToEnd(int64_t job_id, int steps = 20'000);
  // One unit of work on a board and a step of the server.
  void Turn();
  v1::Job Job(int64_t job_id);
  std::vector<StoredRecord> Records(const std::string& workload);
  BestKey Key(const std::string& workload,
              const std::string& device_class = kClass);

  // What must hold of an ended job whatever happened on the way.
  void CheckInvariants(int64_t job_id);

  std::string compiler = kCompiler;  // of the server
  // Of servers that are started from now on.
  size_t max_unstored = JobManagerOptions().max_unstored;

 private:
  FakeClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  std::string path_;
  std::unique_ptr<TuningLog> log_;
  std::unique_ptr<CrashingLog> crashing_;
  Landscapes landscapes_;
  std::unique_ptr<SimulatedFleet> fleet_;
  std::unique_ptr<JobManager> jobs_;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_SERVER_SUPPORT_SERVER_WORLD_H_

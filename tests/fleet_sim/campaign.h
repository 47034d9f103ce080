// What a simulated fleet goes through, in order: all boards attach; jobs keep
// them busy; all connections break at once and come back; perhaps the tracker
// is killed; the jobs end. Then every promise is checked against the tuning
// log.
#ifndef REGATTA_TESTS_FLEET_SIM_CAMPAIGN_H_
#define REGATTA_TESTS_FLEET_SIM_CAMPAIGN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/fleet_sim/daemons.h"
#include "tests/fleet_sim/jobs_client.h"
#include "tests/fleet_sim/sim_lab.h"
#include "tests/fleet_sim/sim_world.h"
#include "tests/fleet_sim/targets.h"

namespace regatta::fleet_sim {

struct CampaignOptions {
  int boards = 100;
  int boards_per_class = 250;
  int credit = 2;
  int workloads = 2;  // tasks of a job; one job for each class
  std::string strategy = "random";
  // Of each task; 0: by time, until the load and what follows it are over.
  int64_t trials = 0;
  absl::Duration load = absl::Seconds(30);
  absl::Duration after = absl::Seconds(15);   // more load once all are back
  absl::Duration limit = absl::Seconds(180);  // of attaching, of coming back
  bool cut_all = true;
  bool kill_tracker = false;
  bool tls = false;  // mutual, each board with a certificate of its own
  absl::Duration heartbeat = absl::Seconds(10);
  WorldOptions world;
  std::string dir;
};

class Campaign {
 public:
  explicit Campaign(CampaignOptions options);
  ~Campaign();

  // Prints as it goes, and one table at the end. Internal: a promise was
  // broken, or a phase did not end within its limit; says which.
  absl::Status Run();

 private:
  struct Phase;

  std::vector<v1::Hello> Boards() const;
  // Daemons, certificates, boards.
  absl::Status Prepare();
  absl::Status Attach();
  absl::Status SubmitJobs();
  absl::Status Load();
  absl::Status CutAll();
  absl::Status KillTracker();
  absl::Status After();
  absl::Status End();
  absl::Status Audit();
  void PrintTable() const;
  // What was measured while boards work beside what is wanted of so many.
  void AimLoad();

  // Lets the fleet go on until `done` holds or `limit` is over, which is an
  // error unless `may_end`. Prints a line every few seconds. What was measured
  // meanwhile becomes a row of the table.
  absl::Status Watch(const std::string& name, absl::Duration limit,
                     bool may_end, const std::function<bool()>& done);
  // Watches until every board was welcomed since the last Mark.
  absl::Status WatchReturn(const std::string& name);
  absl::StatusOr<bool> JobsEnded();
  void Row(const std::string& what, const std::string& value);

  const CampaignOptions options_;
  const Clock& clock_;
  std::unique_ptr<SimLab> lab_;  // nullptr: plain text
  std::unique_ptr<Daemons> daemons_;
  std::unique_ptr<JobsClient> jobs_;
  std::unique_ptr<SimWorld> world_;
  SteadyTime began_;
  std::vector<Phase> phases_;
  std::vector<std::pair<std::string, std::string>> rows_;
  Targets targets_;
};

}  // namespace regatta::fleet_sim

#endif  // REGATTA_TESTS_FLEET_SIM_CAMPAIGN_H_

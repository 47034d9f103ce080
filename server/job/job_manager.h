// Jobs from submission to their end: checks requests, hands work to the
// dispatcher, commits results to the tuning log and acknowledges them, and
// takes everything up again after a restart.
//
// Whatever the tracker says only queues; Step does the work: it commits all
// results that are queued in one transaction, acknowledges them, tells the
// tasks, saves what changed and only then sends new work out. So an id that a
// board ever saw is one that a restarted server knows.
//
// Of the jobs that have ended only the newest kKeptEnded stay in memory; others
// are read from the log when asked for.
//
// Thread safety: all methods may be called from any thread. Step runs on one
// thread at a time; Run calls it whenever there is something to do. Readers
// never wait for a step, nor for the log but to read ended jobs that are no
// longer in memory (Get, List, WaitForChange).
#ifndef REGATTA_SERVER_JOB_JOB_MANAGER_H_
#define REGATTA_SERVER_JOB_JOB_MANAGER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/random.h"
#include "compiler/target/target.h"
#include "server/job/canaries.h"
#include "server/job/commit_stats.h"
#include "server/job/dispatcher.h"
#include "server/job/fleet_view.h"
#include "server/job/managed_job.h"
#include "storage/tuning_log.h"

namespace regatta {

struct JobManagerOptions {
  TuningLog* log = nullptr;          // not owned, outlives the manager
  Dispatcher* dispatcher = nullptr;  // likewise
  const Clock* clock = nullptr;      // likewise
  // InvalidArgument for a target that this compiler has no generator for.
  std::function<absl::StatusOr<std::string>(const Target&)> compiler_version;
  uint64_t seed = 0;  // of the seeds that it draws for jobs without one
  // Results kept while the log cannot be written. Later ones are let go
  // unacked, and had again from the tracker once the log takes these.
  size_t max_unstored = 10'000;
};

// What is known of a device class without asking the fleet.
struct KnownClass {
  std::string target;
  bool simulated = false;
};

struct JobCounts {
  std::map<v1::JobState, int64_t> open;  // that have not ended
  bool attached = false;                 // to a tracker
};

class JobManager : public Dispatcher::Listener {
 public:
  // Loads the log's jobs; those that had not ended go on.
  static absl::StatusOr<std::unique_ptr<JobManager>> Create(
      JobManagerOptions options);
  ~JobManager() override;

  // The job as accepted; see NormaliseJobRequest for refusals. A request_id
  // seen before gives that job again.
  absl::StatusOr<v1::Job> Submit(const v1::SubmitJobRequest& request);
  // NotFound names the id and the newest job there is.
  absl::StatusOr<v1::Job> Get(int64_t job_id) const;
  // Newest first. An error: ended jobs could not be read from the log.
  absl::StatusOr<std::vector<v1::Job>> List() const;
  // FailedPrecondition when the job has ended.
  absl::StatusOr<v1::Job> Cancel(int64_t job_id);
  // Paused tasks go on, what paused them is forgotten. FailedPrecondition when
  // none is paused.
  absl::StatusOr<v1::Job> Resume(int64_t job_id);

  // The job once its status is another than the one of `version`, at once for
  // version 0, or after `timeout` as it is then. Sets `version` to what is
  // returned; a job that left memory meanwhile has ended and has another
  // version than any before. Unavailable once the manager closes.
  absl::StatusOr<v1::Job> WaitForChange(int64_t job_id, absl::Duration timeout,
                                        int64_t* version) const;
  std::shared_ptr<const FleetView> fleet() const;
  JobCounts Count() const;
  const CommitStats& commit_stats() const { return commit_stats_; }
  // A class that a job of this log ran on or a board registered with.
  std::optional<KnownClass> FindClass(const std::string& device_class) const;
  std::map<std::string, KnownClass> KnownClasses() const;
  // Classes that the log has records of or jobs for, sorted; with `imported`
  // those that it knows from other logs only, too.
  absl::StatusOr<std::vector<std::string>> LoggedClasses(bool imported) const;
  // Of the latest result from a board of the class; "": none in this process.
  std::string MeasureProtocol(const std::string& device_class) const;

  void OnAttached(const v1::Attached& attached) override;
  void OnDetached() override;
  void OnResults(std::vector<v1::TrialResult> results) override;
  void OnFleetChange(const v1::FleetChange& change) override;
  void OnWaitReport(const v1::WaitReport& report) override;

  // Handles everything queued. False when there was nothing.
  bool Step();
  // Steps as needed until Close.
  void Run();
  // Ends Run and every wait. Nothing is written afterwards.
  void Close();

  static constexpr size_t kKeptEnded = 32;

 private:
  struct Arrival {
    v1::TrialResult result;
    SteadyTime at;
  };
  struct Events {
    std::vector<Arrival> results;
    std::shared_ptr<const FleetView> fleet;       // null: no news
    std::unique_ptr<v1::WaitReport> wait_report;  // likewise
    std::unique_ptr<v1::Attached> attached;       // likewise
    bool detached = false;
    bool empty() const {
      return results.empty() && !fleet && !wait_report && !attached &&
             !detached;
    }
  };
  struct JobSlot {
    explicit JobSlot(ManagedJob managed) : job(std::move(managed)) {}
    ManagedJob job;
    std::vector<v1::Work> unsent;  // decided, waiting for the save
    std::vector<std::string> uncancelled;
    bool cancel_all = false;  // likewise
    bool dirty = false;       // to be saved before anything is sent
    bool ended = false;       // and saved so
    bool changed = true;      // its status may be another than the snapshot's
    bool exact = true;  // a task has settled: a status of before is no use
    v1::Job status;     // as of then, see StatusOf
    SteadyTime status_at;
    SteadyTime published_at;
  };
  struct Snapshot {
    v1::Job job;
    int64_t version = 0;
  };
  class Port;

  explicit JobManager(JobManagerOptions options);
  absl::Status Load();
  void TakeFleetNews(Events& events);
  void TakeAttachment(const v1::Attached& attached);
  // Commits, acknowledges and applies; what could not be stored is kept.
  void CommitResults(std::vector<Arrival> arrivals);
  // One verdict per arrival. An error: the log takes nothing now.
  absl::StatusOr<std::vector<v1::TrialAck>> Store(
      const std::vector<Arrival>& arrivals);
  void NoteCommit(const std::vector<Arrival>& arrivals,
                  const absl::StatusOr<std::vector<v1::TrialAck>>& acks,
                  absl::Duration took);
  void KeepUnstored(std::vector<Arrival> arrivals);
  // Asks for what was let go, once the log has taken all that was kept.
  void RecoverLetGo();
  // NotFound: there is no such task. A job that only the log holds is loaded;
  // another error: it could not be read now.
  absl::StatusOr<TaskRunner*> FindTask(const v1::TrialSpec& spec);
  absl::Status LoadEnded(int64_t job_id);
  void ForgetEnded();
  // InvalidArgument or NotFound: the result is refused, now and later. Another
  // error: the log could not be asked.
  absl::Status CheckResult(const v1::TrialResult& result);
  void ApplyResult(const Arrival& arrival, v1::AckStatus status,
                   SteadyTime committed);
  // A task that can never start is settled as failed.
  absl::Status PrepareTask(TaskRunner& task);
  void AdvanceJob(JobSlot& slot);
  void AdvanceAll();
  // Saves and sends what the job's tasks decided.
  void FlushJob(JobSlot& slot) { FlushJobs({&slot}); }
  // Saves those that changed, in one transaction; then sends their work out.
  void FlushJobs(const std::vector<JobSlot*>& slots);
  // The job's status, which costs: while many jobs run, one of a moment ago
  // unless it was to be exact.
  const v1::Job& StatusOf(JobSlot& slot);
  absl::Duration StatusAge() const;  // that such a one has at most
  TuningLog::JobProgress ProgressOf(JobSlot& slot);
  void SendSaved(JobSlot& slot);
  void TouchActiveJobs();
  void NoteTrouble(const absl::Status& status);
  void PublishSnapshot(JobSlot& slot);
  void PublishSnapshots();
  void PublishJob(v1::Job job);
  absl::Status CheckSpaces(const v1::SubmitJobRequest& request) const;
  TaskSurroundings SurroundingsOf(const TaskRunner& task) const;
  int Wanted(const TaskRunner& task, double class_weight) const;
  int64_t UnixMs() const;

  const JobManagerOptions options_;
  CommitStats commit_stats_;

  // Lock order: step_mutex_ and mirror_mutex_, never both, before the others,
  // which are never held together.
  // Held by whoever changes jobs; may be held while the log is written.
  mutable std::mutex step_mutex_;
  std::map<int64_t, JobSlot> jobs_;
  Random seeds_;
  std::shared_ptr<const FleetView> fleet_in_use_;
  CanaryMaker canaries_;
  std::map<std::pair<int64_t, std::string>, std::string> waits_;
  std::map<std::pair<int64_t, int>, SteadyTime> last_result_;
  std::vector<Arrival> unstored_;  // results that the log could not take yet
  bool let_go_ = false;            // some there was no room for in there
  std::atomic<bool> attached_ = false;
  std::string trouble_;        // why the log cannot be written; "": it can
  std::string known_trouble_;  // that stands in the daemon's messages
  std::optional<SteadyTime> refreshed_;  // when all snapshots were made anew
  std::atomic<bool> has_active_job_ = false;
  int64_t active_jobs_ = 0;  // when they were last advanced
  int64_t newest_id_ = 0;
  std::set<int64_t> broken_;  // jobs whose rows cannot be read

  std::mutex mirror_mutex_;
  FleetMirror mirror_;

  mutable std::mutex events_mutex_;
  mutable std::condition_variable events_ready_;
  Events events_;
  bool closed_ = false;

  mutable std::mutex view_mutex_;
  mutable std::condition_variable view_changed_;
  std::map<int64_t, Snapshot> snapshots_;
  std::shared_ptr<const FleetView> fleet_;
  std::map<std::string, KnownClass> known_classes_;
  std::map<std::string, std::string> protocols_;  // by device class
  bool view_closed_ = false;
  bool ended_forgotten_ = false;  // the log holds ended jobs besides
};

}  // namespace regatta

#endif  // REGATTA_SERVER_JOB_JOB_MANAGER_H_

// Records of the size and variety that a lab writes, from a seed: what the
// benchmarks of the tuning log and of queries fill a log with.
//
// Modelled on a real run of `regatta tune` (110 records for 100 candidates):
// per job one default, 100 candidates of every outcome, six racing and three
// confirming records, one publication; real schedule texts, five blocks, two
// sensors, a context shared by the records of a job.
//
// Thread safety: MakeJob may be called from any thread.
#ifndef REGATTA_TESTS_BENCH_PLANTED_LOG_H_
#define REGATTA_TESTS_BENCH_PLANTED_LOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/expr/expr.h"
#include "compiler/target/target.h"
#include "storage/tuning_log.h"

namespace regatta::bench {

struct PlantedWorkload {
  Workload workload;
  WorkloadInfo info;
  std::vector<std::string> schedules;  // legal on PlantedLog::target()
};

struct PlantedJob {
  std::vector<v1::TrialResult> results;
  Publication verdict;
};

class PlantedLog {
 public:
  static constexpr int kRecordsPerJob = 110;
  static constexpr int kConfirms = 3;  // its last; the first was published
  static constexpr char kCompiler[] = "c339028ca46f5626/LLVM 19.1.7";
  static constexpr char kProtocol[] = "1";

  // Enough jobs for `records`; the number of workloads grows with it, to 4,000.
  PlantedLog(int64_t records, uint64_t seed);

  int64_t jobs() const { return jobs_; }
  const std::vector<PlantedWorkload>& workloads() const { return workloads_; }
  const Target& target() const { return target_; }

  // What job number `job`, of any number, records. The key of its verdict is
  // its cell; jobs beyond the workloads meet cells again.
  PlantedJob MakeJob(int64_t job) const;
  BestKey KeyOfJob(int64_t job) const;
  size_t WorkloadOfJob(int64_t job) const;

  // Writes all of it through the public interface from `threads` threads.
  absl::Status WriteTo(TuningLog& log, int threads) const;

 private:
  absl::Status WriteJobs(TuningLog& log, int64_t from, int64_t end) const;

  int64_t jobs_;
  uint64_t seed_;
  Target target_;
  std::vector<PlantedWorkload> workloads_;
};

}  // namespace regatta::bench

#endif  // REGATTA_TESTS_BENCH_PLANTED_LOG_H_

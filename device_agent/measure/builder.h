// The building half of a trial: its module and its workload's reference, from
// caches where they were made before. A reference is code of the host's
// processors whatever the device, so devices of one board share them. Its
// outputs are made, and checked by the interpreter's values, on the board, also
// where a builder elsewhere makes the modules.
//
// One per build thread; not thread-safe, except Abort. The caches are shared
// and are thread-safe.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_BUILDER_H_
#define REGATTA_DEVICE_AGENT_MEASURE_BUILDER_H_

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "device_agent/measure/build_worker.h"
#include "device_agent/measure/core_locks.h"
#include "device_agent/measure/reference_store.h"
#include "device_agent/measure/run_client.h"
#include "device_agent/measure/worker_ending.h"

namespace regatta {

// A built module and what a board must know to judge it.
struct BuiltCode {
  UniqueFd file;  // the serialised module, sealed
  v1::BuiltModule info;
  std::string builder;  // as Environment.builder
};

// Recently built modules: finalists are measured several times.
class ModuleCache {
 public:
  static constexpr size_t kModules = 128;
  std::shared_ptr<const BuiltCode> Find(const std::string& key);
  void Insert(const std::string& key, std::shared_ptr<const BuiltCode> code);

 private:
  std::mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<const BuiltCode>>> modules_;
};

// Everything that a run worker needs for one trial, or why there is none.
struct Built {
  std::shared_ptr<const BuiltCode> code;
  ReferenceStore::Reference reference;
  std::optional<Ending> failure;
  int64_t build_ns = 0;  // spent now, references not counted; 0: from the cache
  std::string compiler_version;  // of the module; "": not known
};

struct BuilderOptions {
  RunWorkerOptions run_worker;  // makes references, on this builder's core
  v1::DescribeRequest device;   // what it builds for
  v1::DescribeRequest host;     // the processors that references run on
  int64_t machine_bytes = 0;    // MachineMemoryBytes, for people
  int cpu = 0;  // where it works: locked during each build on this board, else
                // while a reference runs
};

class Builder {
 public:
  // REQUIRES: the locks, the caches and the clock outlive it.
  Builder(BuilderOptions options, std::unique_ptr<BuildWorker> worker,
          std::shared_ptr<SpawnerClient> spawner, const CoreLocks* cores,
          ModuleCache* modules, ReferenceStore* references, const Clock* clock);

  // Waits for the core and for builders; a failure "cancelled" as soon as
  // `cancelled` says so while it waits.
  Built Build(const v1::TrialSpec& spec,
              const std::function<bool()>& cancelled);
  void Abort() { worker_->Abort(); }

 private:
  using Cancelled = std::function<bool()>;

  // What an error of whoever builds means for a trial. Builders elsewhere that
  // do not answer are no fault of this board: the trial has no result here.
  Ending FailureOf(const absl::Status& status) const;
  absl::StatusOr<CoreLocks::Held> TakeCore(const Cancelled& cancelled) const;
  absl::Status DescribeBoth(const Cancelled& cancelled);
  // What references are compiled for.
  std::string ReferenceTarget(const v1::TrialSpec& spec) const;
  // Sets `built->code` or `built->failure`.
  void BuildModule(const v1::TrialSpec& spec, const Cancelled& cancelled,
                   Built* built);
  void FindReference(const v1::TrialSpec& spec, const Cancelled& cancelled,
                     Built* built);
  absl::StatusOr<UniqueFd> MakeReference(const v1::TrialSpec& spec,
                                         const Cancelled& cancelled);

  const BuilderOptions options_;
  const std::unique_ptr<BuildWorker> worker_;
  const std::shared_ptr<SpawnerClient> spawner_;
  const CoreLocks* const cores_;
  ModuleCache* const modules_;
  ReferenceStore* const references_;
  const Clock* const clock_;
  std::string compiler_version_;  // of the device's kind; "": not asked yet
  v1::Description host_;  // only for devices beside the host's processors
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_BUILDER_H_

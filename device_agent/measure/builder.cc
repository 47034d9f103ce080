#include "device_agent/measure/builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/digest.h"
#include "base/memory_file.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

constexpr int kSamples = 1000;
// Plain loops with wide accumulation; slower is a fault of the board.
constexpr double kSlowestReferenceFlops = 5e7;
constexpr int64_t kMaxReferenceMs = 10 * 60 * 1000;

std::string ModuleKey(const v1::TrialSpec& spec) {
  return absl::StrCat(spec.workload(), "\n", spec.target(), "\n",
                      spec.policy().threads(), "\n", spec.schedule().space(),
                      "\n", spec.schedule().space_version(), "\n",
                      spec.compiler_version(), "\n", spec.schedule().text());
}

std::string TooLarge(int64_t needed, int64_t allowed, int64_t machine) {
  const auto gib = [](int64_t bytes) {
    return static_cast<double>(bytes) / (int64_t{1} << 30);
  };
  return absl::StrFormat(
      "needs %.2f GiB for inputs, outputs (twice, to compare) and workspace; "
      "a kernel gets at most %.2f GiB of this board's %.2f GiB",
      gib(needed), gib(allowed), gib(machine));
}

// The code says whether memory was what it lacked.
absl::Status NoReference(v1::Outcome outcome, const std::string& detail) {
  return outcome == v1::OUTCOME_OUT_OF_MEMORY
             ? absl::ResourceExhaustedError(detail)
             : absl::InternalError(detail);
}

}  // namespace

std::shared_ptr<const BuiltCode> ModuleCache::Find(const std::string& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found =
      std::find_if(modules_.begin(), modules_.end(),
                   [&](const auto& entry) { return entry.first == key; });
  if (found == modules_.end()) return nullptr;
  modules_.splice(modules_.begin(), modules_, found);
  return found->second;
}

void ModuleCache::Insert(const std::string& key,
                         std::shared_ptr<const BuiltCode> code) {
  std::lock_guard<std::mutex> lock(mutex_);
  modules_.emplace_front(key, std::move(code));
  if (modules_.size() > kModules) modules_.pop_back();
}

Builder::Builder(BuilderOptions options, std::unique_ptr<BuildWorker> worker,
                 std::shared_ptr<SpawnerClient> spawner, const CoreLocks* cores,
                 ModuleCache* modules, ReferenceStore* references,
                 const Clock* clock)
    : options_(std::move(options)),
      worker_(std::move(worker)),
      spawner_(std::move(spawner)),
      cores_(cores),
      modules_(modules),
      references_(references),
      clock_(clock) {}

Ending Builder::FailureOf(const absl::Status& status) const {
  std::string detail(status.message());
  if (absl::IsCancelled(status)) {
    return {v1::OUTCOME_CANCELLED, std::move(detail)};
  }
  const bool unanswered =
      absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status);
  return {unanswered && !worker_->on_board() ? v1::OUTCOME_AGENT_LOST
                                             : v1::OUTCOME_DEVICE_FAULT,
          std::move(detail)};
}

absl::StatusOr<CoreLocks::Held> Builder::TakeCore(
    const Cancelled& cancelled) const {
  return cores_->Take({options_.cpu}, CoreLocks::Use::kBuild, cancelled);
}

absl::Status Builder::DescribeBoth(const Cancelled& cancelled) {
  if (!compiler_version_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::Description description,
                   Describe(*worker_, options_.device, cancelled));
  if (options_.device.has_device()) {
    ASSIGN_OR_RETURN(host_, Describe(*worker_, options_.host, cancelled));
  }
  compiler_version_ = description.compiler_version();
  return absl::OkStatus();
}

std::string Builder::ReferenceTarget(const v1::TrialSpec& spec) const {
  return options_.device.has_device() ? host_.target() : spec.target();
}

Built Builder::Build(const v1::TrialSpec& spec, const Cancelled& cancelled) {
  Built built;
  std::optional<CoreLocks::Held> core;
  if (worker_->on_board()) {
    absl::StatusOr<CoreLocks::Held> taken = TakeCore(cancelled);
    if (!taken.ok()) {
      built.failure = FailureOf(taken.status());
      return built;
    }
    core = *std::move(taken);
  }
  if (const absl::Status status = DescribeBoth(cancelled); !status.ok()) {
    built.failure = FailureOf(status);
    return built;
  }
  BuildModule(spec, cancelled, &built);
  if (built.failure.has_value()) return built;
  const int64_t needed = built.code->info.run_memory_bytes();
  const int64_t allowed = options_.run_worker.memory_bytes;
  if (allowed > 0 && needed > allowed) {
    built.failure = {v1::OUTCOME_OUT_OF_MEMORY,
                     TooLarge(needed, allowed, options_.machine_bytes)};
    return built;
  }
  FindReference(spec, cancelled, &built);
  return built;
}

void Builder::FindReference(const v1::TrialSpec& spec,
                            const Cancelled& cancelled, Built* built) {
  const std::string compiler = options_.device.has_device()
                                   ? host_.compiler_version()
                                   : built->compiler_version;
  const std::string key =
      Sha256Hex(absl::StrCat(spec.workload(), "\n", ReferenceTarget(spec), "\n",
                             compiler, "\n", spec.input_seed()));
  absl::StatusOr<ReferenceStore::Reference> reference =
      references_->Get(key, [&] { return MakeReference(spec, cancelled); });
  if (reference.ok()) {
    built->reference = *std::move(reference);
    return;
  }
  built->failure = FailureOf(reference.status());
  if (absl::IsResourceExhausted(reference.status())) {
    built->failure->outcome = v1::OUTCOME_OUT_OF_MEMORY;
  }
  built->failure->detail = absl::StrCat("the reference of ", spec.workload(),
                                        ": ", built->failure->detail);
}

void Builder::BuildModule(const v1::TrialSpec& spec, const Cancelled& cancelled,
                          Built* built) {
  // What builds elsewhere is held to the version that the trial names.
  built->compiler_version =
      worker_->on_board() ? compiler_version_ : spec.compiler_version();
  const std::string key = ModuleKey(spec);
  built->code = modules_->Find(key);
  if (built->code != nullptr) return;
  v1::BuildRequest request;
  v1::ModuleRequest& module = *request.mutable_module();
  module.set_workload(spec.workload());
  module.set_target(spec.target());
  module.set_threads(spec.policy().threads());
  module.set_compiler_version(spec.compiler_version());
  *module.mutable_schedule() = spec.schedule();
  const SteadyTime started = clock_->Steady();
  absl::StatusOr<BuildWorker::Reply> reply =
      worker_->Call(std::move(request), cancelled);
  built->build_ns = clock_->Steady().ns - started.ns;
  if (!reply.ok()) {
    built->failure = FailureOf(reply.status());
  } else if (reply->response.has_failure()) {
    built->failure = {reply->response.failure().outcome(),
                      reply->response.failure().detail()};
  } else {
    auto code = std::make_shared<BuiltCode>();
    code->file = std::move(reply->file);
    code->info = reply->response.module();
    code->builder = std::move(reply->builder);
    modules_->Insert(key, code);
    built->code = std::move(code);
  }
}

absl::StatusOr<UniqueFd> Builder::MakeReference(const v1::TrialSpec& spec,
                                                const Cancelled& cancelled) {
  v1::BuildRequest request;
  v1::ReferenceRequest& wanted = *request.mutable_reference();
  wanted.set_workload(spec.workload());
  wanted.set_target(ReferenceTarget(spec));
  wanted.set_input_seed(spec.input_seed());
  wanted.set_samples(kSamples);
  ASSIGN_OR_RETURN(const BuildWorker::Reply reply,
                   worker_->Call(std::move(request), cancelled));
  if (reply.response.has_failure()) {
    return NoReference(reply.response.failure().outcome(),
                       reply.response.failure().detail());
  }
  const v1::BuiltReference& reference = reply.response.reference();
  v1::RunRequest run;
  run.set_input_seed(spec.input_seed());
  run.set_threads(1);
  run.set_make_reference(true);
  run.set_reduction_length(reference.reduction_length());
  *run.mutable_samples() = reference.outputs();
  RunWorkerOptions options = options_.run_worker;
  options.wall_limit_ms = std::min(
      kMaxReferenceMs,
      options.wall_limit_ms + static_cast<int64_t>(1e3 * reference.flops() /
                                                   kSlowestReferenceFlops));
  std::optional<CoreLocks::Held> core;  // held already where builds need it
  if (!worker_->on_board()) {
    ASSIGN_OR_RETURN(core, TakeCore(cancelled));
  }
  ASSIGN_OR_RETURN(UniqueFd file, CreateMemoryFile("reference"));
  absl::StatusOr<std::unique_ptr<RunClient>> started =
      RunClient::Start(options, spawner_, run, reply.file.get(), file.get());
  // Whatever the spawner lacks is lacking here.
  if (!started.ok()) return absl::InternalError(started.status().message());
  const std::unique_ptr<RunClient> worker = *std::move(started);
  worker->WaitVerified();
  worker->End();
  if (worker->ending().has_value()) {
    return NoReference(worker->ending()->outcome, worker->ending()->detail);
  }
  return file;
}

}  // namespace regatta

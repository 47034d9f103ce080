#include "tests/bench/tuned_operator.h"

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <future>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/memory_file.h"
#include "base/robust_stats.h"
#include "base/status_macros.h"
#include "compiler/ops/op.h"
#include "device_agent/build/workload_facts.h"
#include "device_agent/run/block_timer.h"
#include "device_agent/verify/input_data.h"
#include "device_agent/verify/output_check.h"
#include "server/search/search_strategy.h"

namespace regatta::bench {
namespace {

constexpr uint64_t kInputSeed = 1;
constexpr size_t kFinalists = 6;
constexpr int kFinalRounds = 9;

// A larger buffer's end never meets the same cache sets as another's begin.
constexpr int64_t kSpare = 4096 + 256;

std::unique_ptr<ProbeMemory> Memory(int64_t bytes) {
  return ProbeMemory::Allocate(std::max<int64_t>(1, bytes) + kSpare);
}

class ThreadClockImpl : public Clock {
 public:
  absl::Time Wall() const override { return RealClock().Wall(); }
  SteadyTime Steady() const override {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return {now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec};
  }
};

}  // namespace

const Clock& ThreadClock() {
  static const ThreadClockImpl clock;
  return clock;
}

absl::StatusOr<std::unique_ptr<TunedOperator>> TunedOperator::Create(
    const std::string& workload, const Target& target, MachineHints hints) {
  ASSIGN_OR_RETURN(Workload parsed, ParseWorkload(workload));
  ASSIGN_OR_RETURN(Space space, CreateSpace(parsed, target, 1, hints));
  std::unique_ptr<TunedOperator> made(new TunedOperator(
      std::move(parsed), std::make_shared<const Space>(std::move(space))));
  RETURN_IF_ERROR(made->MakeReference());
  return made;
}

std::vector<Stretch> TunedOperator::Stretches(
    const std::vector<Tensor>& tensors) {
  std::vector<Stretch> stretches;
  for (const Tensor& tensor : tensors) {
    stretches.push_back({tensor.memory->data(), tensor.bytes});
  }
  return stretches;
}

absl::Status TunedOperator::MakeTensors(const Module& module) {
  for (const ModuleBuffer* buffer :
       module.BuffersWithRole(BufferRole::kInput)) {
    Tensor tensor{Memory(buffer->bytes), buffer->bytes};
    if (tensor.memory == nullptr) {
      return absl::ResourceExhaustedError("no memory for an input");
    }
    FillInput(kInputSeed, static_cast<int>(inputs_.size()),
              buffer->bytes / DTypeBytes(buffer->dtype), buffer->dtype,
              tensor.memory->data());
    pointers_.push_back(tensor.memory->data());
    inputs_.push_back(std::move(tensor));
  }
  for (const ModuleBuffer* buffer :
       module.BuffersWithRole(BufferRole::kOutput)) {
    Tensor tensor{Memory(buffer->bytes), buffer->bytes};
    if (tensor.memory == nullptr) {
      return absl::ResourceExhaustedError("no memory for an output");
    }
    pointers_.push_back(tensor.memory->data());
    outputs_.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

absl::Status TunedOperator::MakeReference() {
  ASSIGN_OR_RETURN(
      const Module module,
      CompileReference(workload_, space_->context().target, "reference"));
  RETURN_IF_ERROR(MakeTensors(module));
  Candidate reference{.workspace_bytes = module.workspace_bytes};
  RETURN_IF_ERROR(Load(module, reference));
  workspace_ = Memory(module.workspace_bytes);
  Run(reference);
  for (const Tensor& output : outputs_) {
    expected_.emplace_back(output.memory->data(), output.bytes);
  }
  return absl::OkStatus();
}

absl::Status TunedOperator::Load(const Module& module,
                                 Candidate& candidate) const {
  ASSIGN_OR_RETURN(UniqueFd file, SealedMemoryFile("module", module.loadable));
  const std::string path = absl::StrCat("/proc/self/fd/", file.get());
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::InternalError(dlerror());
  // The file stays open as long as the library: the loader tells libraries
  // apart by their paths.
  candidate.library = std::shared_ptr<void>(
      library, [file = std::make_shared<UniqueFd>(std::move(file))](void* p) {
        dlclose(p);
      });
  candidate.entry = reinterpret_cast<Entry>(
      dlsym(library, absl::StrCat(module.name, "_call").c_str()));
  if (candidate.entry == nullptr) return absl::InternalError(dlerror());
  return absl::OkStatus();
}

absl::StatusOr<TunedOperator::Candidate> TunedOperator::Build(
    const Schedule& schedule, int number) const {
  Candidate candidate{.point = schedule, .schedule = space_->Print(schedule)};
  const auto module =
      Compile(*space_, candidate.schedule, absl::StrCat("candidate", number));
  if (!module.ok()) return module.status();
  candidate.workspace_bytes = module->workspace_bytes;
  RETURN_IF_ERROR(Load(*module, candidate));
  return candidate;
}

void TunedOperator::Run(const Candidate& candidate) {
  candidate.entry(pointers_.data(), workspace_->data());
}

absl::Status TunedOperator::Verify(const Candidate& candidate) {
  for (const Tensor& output : outputs_) {
    std::fill_n(output.memory->data(), output.bytes, '\xff');
  }
  Run(candidate);
  const std::vector<int> ids = workload_.TensorsWithRole(TensorRole::kOutput);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const TensorDecl& tensor = workload_.tensors[ids[i]];
    const OutputCheck check = CheckOutput(
        outputs_[i].memory->data(), expected_[i].data(), tensor.Elements(),
        tensor.dtype, ReductionLength(workload_));
    if (!check.ok()) {
      return absl::InternalError(
          absl::StrCat(candidate.schedule, ": ", tensor.name, " ",
                       check.Describe(tensor.Elements())));
    }
  }
  return absl::OkStatus();
}

double TunedOperator::Screen(const Candidate& candidate, double incumbent) {
  BlockTimer timer(
      ThreadClock(),
      [&](int64_t calls) -> std::optional<int64_t> {
        const SteadyTime start = ThreadClock().Steady();
        for (int64_t i = 0; i < calls; ++i) {
          if (candidate.entry(pointers_.data(), workspace_->data()) != 0) {
            return std::nullopt;
          }
        }
        return absl::ToInt64Nanoseconds(ThreadClock().Steady() - start);
      },
      nullptr);
  timer.WarmUp();
  double best = std::numeric_limits<double>::max();
  for (const TimedBlock& block :
       timer.Screen(static_cast<int64_t>(incumbent * 1e9)).blocks) {
    best = std::min(best, block.PerCall() * 1e-9);
  }
  return best;
}

TunedOperator::Candidate TunedOperator::Final(
    std::vector<Candidate> finalists) {
  std::vector<std::vector<double>> seconds(finalists.size());
  for (int round = 0; round < kFinalRounds; ++round) {
    for (size_t i = 0; i < finalists.size(); ++i) {
      Run(finalists[i]);
      const SteadyTime start = ThreadClock().Steady();
      Run(finalists[i]);
      seconds[i].push_back(
          absl::ToDoubleSeconds(ThreadClock().Steady() - start));
    }
  }
  size_t best = 0;
  for (size_t i = 0; i < finalists.size(); ++i) {
    finalists[i].seconds = Median(seconds[i]);
    if (finalists[i].seconds < finalists[best].seconds) best = i;
  }
  return finalists[best];
}

absl::Status TunedOperator::Tune(int trials, uint64_t seed) {
  SearchContext context;
  context.space = space_;
  context.seed = seed;
  context.seeds = space_->Seeds();
  const auto strategy = SearchStrategies()[0].create(std::move(context));
  ASSIGN_OR_RETURN(default_, Build(space_->Default(), 0));
  std::vector<Candidate> all;
  double incumbent = 0;
  const auto measure = [&](Candidate candidate) {
    if (candidate.workspace_bytes + kSpare > workspace_->bytes()) {
      workspace_ = Memory(candidate.workspace_bytes);
    }
    candidate.seconds = Screen(candidate, incumbent);
    strategy->Tell({.schedule = candidate.point,
                    .ok = true,
                    .time_ns = static_cast<int64_t>(candidate.seconds * 1e9)});
    if (incumbent == 0 || candidate.seconds < incumbent) {
      incumbent = candidate.seconds;
    }
    all.push_back(std::move(candidate));
  };
  measure(default_);
  // The next candidate is built while one is timed.
  std::future<absl::StatusOr<Candidate>> next;
  for (int trial = 0; trial <= trials; ++trial) {
    std::future<absl::StatusOr<Candidate>> built = std::move(next);
    if (trial < trials) {
      const std::vector<Schedule> asked = strategy->Ask(1);
      if (asked.empty()) trials = trial;
      if (!asked.empty()) {
        next = std::async(std::launch::async,
                          [this, schedule = asked[0], number = trial + 1] {
                            return Build(schedule, number);
                          });
      }
    }
    if (!built.valid()) continue;
    ASSIGN_OR_RETURN(Candidate candidate, built.get());
    measure(std::move(candidate));
  }
  std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.seconds < b.seconds;
  });
  if (all.size() > kFinalists) all.resize(kFinalists);
  tuned_ = Final(std::move(all));
  RETURN_IF_ERROR(Verify(default_));
  return Verify(tuned_);
}

}  // namespace regatta::bench

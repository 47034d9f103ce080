#include "tests/bench/gpu_bits.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/robust_stats.h"
#include "base/status_macros.h"
#include "compiler/compile.h"
#include "compiler/module/cuda_binary.h"
#include "compiler/module/tensor_bytes.h"
#include "compiler/ops/op.h"
#include "device_agent/run/runtime_list.h"

namespace regatta::bench {
namespace {

constexpr int kBlocks = 5;
constexpr int64_t kCallsPerBlock = 20;
// Of functions that the device approximates, f32 results relative to 1.
constexpr double kNear = 1e-5;
constexpr double kNearNarrow = 1e-2;  // where f16 or bf16 is stored
constexpr uint8_t kPoison = 0xFF;

// Whole numbers: sums of products are exact in any order, also inside tensor
// cores, so that every bit is known.
std::vector<std::string> InputsOf(const Module& module) {
  Random random(17);
  std::vector<std::string> inputs;
  for (const ModuleBuffer* buffer :
       module.BuffersWithRole(BufferRole::kInput)) {
    std::vector<double> values(
        static_cast<size_t>(buffer->bytes / DTypeBytes(buffer->dtype)));
    for (double& value : values) {
      value = static_cast<double>(random.Below(15)) - 7;
    }
    inputs.push_back(ValuesToBytes(values, buffer->dtype));
  }
  return inputs;
}

absl::Status StatusOf(const MaybeFailure& failure) {
  if (!failure) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      v1::Outcome_Name(failure->outcome()), ": ", failure->detail()));
}

struct DeviceRun {
  std::vector<std::string> outputs;
  double ns = 0;
};

absl::StatusOr<DeviceRun> RunOnDevice(const Module& module,
                                      const std::vector<std::string>& inputs,
                                      bool once) {
  RuntimeOptions options;
  options.clock = &RealClock();
  RuntimeOrFailure made = CreateRuntime(module, options);
  RETURN_IF_ERROR(StatusOf(made.failure));
  ModuleRuntime& runtime = *made.runtime;
  std::vector<GuardedMemory> memory;
  for (const std::string& bytes : inputs) {
    ASSIGN_OR_RETURN(GuardedMemory one,
                     GuardedMemory::Allocate(
                         "input", static_cast<int64_t>(bytes.size()), 64));
    std::memcpy(one.data(), bytes.data(), bytes.size());
    memory.push_back(std::move(one));
  }
  RETURN_IF_ERROR(StatusOf(runtime.SetInputs(memory)));
  RETURN_IF_ERROR(StatusOf(runtime.Poison(kPoison)));
  RETURN_IF_ERROR(StatusOf(runtime.Call()));
  DeviceRun run;
  std::vector<const void*> outputs;
  RETURN_IF_ERROR(StatusOf(runtime.ReadOutputs(&outputs)));
  const auto buffers = module.BuffersWithRole(BufferRole::kOutput);
  for (size_t i = 0; i < outputs.size(); ++i) {
    run.outputs.emplace_back(static_cast<const char*>(outputs[i]),
                             static_cast<size_t>(buffers[i]->bytes));
  }
  std::string damage;
  RETURN_IF_ERROR(StatusOf(runtime.FindDamage(&damage)));
  if (!damage.empty()) return absl::UnavailableError(damage);
  if (once) return run;
  std::vector<double> times;
  for (int i = 0; i < kBlocks; ++i) {
    int64_t elapsed_ns = 0;
    RETURN_IF_ERROR(StatusOf(runtime.TimeCalls(kCallsPerBlock, &elapsed_ns)));
    times.push_back(static_cast<double>(elapsed_ns) / kCallsPerBlock);
  }
  run.ns = Median(times);
  return run;
}

bool IsNarrow(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}

// Fills in the verdict and the numbers behind it.
void Compare(const Module& module, const std::vector<std::string>& device,
             const std::vector<std::string>& simulated, KernelCheck& check) {
  double tolerance = kNear;
  const auto buffers = module.BuffersWithRole(BufferRole::kOutput);
  for (size_t b = 0; b < buffers.size(); ++b) {
    const DType dtype = buffers[b]->dtype;
    if (IsNarrow(dtype)) tolerance = kNearNarrow;
    const auto size = static_cast<size_t>(DTypeBytes(dtype));
    const size_t elements = device[b].size() / size;
    const std::vector<double> got =
        ReadValues(device[b].data(), elements, dtype);
    const std::vector<double> expected =
        ReadValues(simulated[b].data(), elements, dtype);
    check.elements += static_cast<int64_t>(elements);
    for (size_t e = 0; e < elements; ++e) {
      if (device[b].compare(e * size, size, simulated[b], e * size, size) ==
          0) {
        continue;
      }
      ++check.differing;
      const double difference =
          std::abs(got[e] - expected[e]) / std::max(1.0, std::abs(expected[e]));
      check.largest = std::max(check.largest,
                               std::isnan(difference) ? HUGE_VAL : difference);
    }
  }
  check.verdict = check.differing == 0 ? Verdict::kEqual
                  : check.approximates && check.largest <= tolerance
                      ? Verdict::kNear
                      : Verdict::kDiffers;
}

absl::Status CheckOne(const Space& space, bool once, KernelCheck& check,
                      bool& device_works) {
  const auto module = Compile(space, check.schedule, check.name);
  if (absl::IsFailedPrecondition(module.status())) {
    check.verdict = Verdict::kRefused;
    return module.status();
  }
  RETURN_IF_ERROR(module.status());
  ASSIGN_OR_RETURN(const CudaBinary binary, ParseCudaBinary(module->loadable));
  check.approximates = binary.ptx.find(".approx") != std::string::npos;
  const std::vector<std::string> inputs = InputsOf(*module);
  auto run = RunOnDevice(*module, inputs, once);
  device_works = run.ok();
  RETURN_IF_ERROR(run.status());
  check.device_ns = run->ns;
  if (once) {
    check.verdict = Verdict::kEqual;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(testing::SimulatedCall simulated,
                   testing::SimulateCall(*module, inputs));
  check.kernels = std::move(simulated.kernels);
  if (!simulated.fault.empty()) {
    return absl::InternalError("in the simulator: " + simulated.fault);
  }
  Compare(*module, run->outputs, simulated.outputs, check);
  return absl::OkStatus();
}

// The default first, none twice.
std::vector<std::string> SchedulesOf(const Space& space, int count) {
  std::vector<std::string> schedules;
  const auto add = [&](const Schedule& schedule) {
    std::string text = space.Print(schedule);
    if (static_cast<int>(schedules.size()) < count &&
        std::find(schedules.begin(), schedules.end(), text) ==
            schedules.end()) {
      schedules.push_back(std::move(text));
    }
  };
  add(space.Default());
  Random random(5);
  if (count > 2) {
    if (const auto drawn = space.Sample(random)) add(*drawn);
  }
  for (const Schedule& seed : space.Seeds()) add(seed);
  return schedules;
}

absl::StatusOr<Space> SpaceOf(const std::string& text, const Target& target) {
  ASSIGN_OR_RETURN(Workload workload, ParseWorkload(text));
  return CreateSpace(std::move(workload), target, 1);
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kEqual:
      return "equal";
    case Verdict::kNear:
      return "near";
    case Verdict::kDiffers:
      return "differs";
    case Verdict::kFailed:
      return "failed";
    case Verdict::kRefused:
      return "refused";
  }
  return "";
}

std::vector<std::string> CheckedWorkloads(bool small) {
  if (small) {
    return {"matmul(m=32,n=32,k=32)", "matmul(m=32,n=32,k=32,dtype=f16)",
            "softmax(rows=4,cols=64)",
            "conv2d(n=1,h=6,w=6,ci=8,co=8,kh=3,kw=3,pad=1)"};
  }
  return {"matmul(m=256,n=256,k=128)",
          "matmul(m=256,n=256,k=128,dtype=f16)",
          "matmul(m=256,n=256,k=128,dtype=bf16)",
          "matmul(m=256,n=256,k=128,dtype=i8)",
          "batch_matmul(b=3,m=60,n=70,k=50)",
          "dense(m=64,n=128,k=96,activation=relu)",
          "dense(m=64,n=128,k=96,dtype=i8)",
          "conv2d(n=1,h=14,w=14,ci=32,co=64,kh=3,kw=3,pad=1)",
          "conv2d(n=1,h=14,w=14,ci=32,co=64,kh=3,kw=3,pad=1,dtype=f16)",
          "softmax(rows=64,cols=500)",
          "layer_norm(rows=64,cols=256)",
          "reduce(shape=64x500,axes=1,kind=sum)",
          "transpose(shape=70x90,perm=1x0)"};
}

std::vector<KernelCheck> CheckKernels(const std::vector<std::string>& workloads,
                                      const Target& target, int schedules,
                                      bool once) {
  std::vector<KernelCheck> checks;
  bool device_works = true;
  for (size_t w = 0; w < workloads.size(); ++w) {
    const auto space = SpaceOf(workloads[w], target);
    const std::vector<std::string> texts = space.ok()
                                               ? SchedulesOf(*space, schedules)
                                               : std::vector<std::string>{""};
    for (size_t s = 0; s < texts.size(); ++s) {
      KernelCheck& check = checks.emplace_back();
      check.name = absl::StrCat("k", w, "_", s);
      check.workload = workloads[w];
      check.schedule = texts[s];
      absl::Status status = space.status();
      if (status.ok()) {
        status =
            device_works
                ? CheckOne(*space, once, check, device_works)
                : absl::UnavailableError("not run: the device failed before");
      }
      check.detail = std::string(status.message());
    }
  }
  return checks;
}

}  // namespace regatta::bench

#include "tests/bench/gpu_race.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/robust_stats.h"
#include "base/status_macros.h"
#include "compiler/compile.h"
#include "compiler/launcher/launcher.h"
#include "compiler/module/tensor_bytes.h"
#include "compiler/ops/op.h"
#include "device_agent/run/cuda_device.h"
#include "device_agent/verify/input_data.h"
#include "tests/bench/gpu_peers.h"

namespace regatta::bench {
namespace {

constexpr double kTurnNs = 5e6;  // a turn takes at least this long
constexpr int kMaxCalls = 1000;
constexpr int kTensors = 3;

// Device memory that stays until the process ends.
class GpuMemory {
 public:
  explicit GpuMemory(const cuda::Api& api) : api_(api) {}

  absl::StatusOr<uint64_t> Allocate(size_t bytes) const {
    cuda::Address address = 0;
    RETURN_IF_ERROR(Check(api_.MemAlloc(&address, bytes), "cuMemAlloc"));
    return address;
  }
  absl::StatusOr<uint64_t> Upload(const std::string& bytes) const {
    ASSIGN_OR_RETURN(const uint64_t address, Allocate(bytes.size()));
    RETURN_IF_ERROR(Check(api_.MemcpyHtoD(address, bytes.data(), bytes.size()),
                          "cuMemcpyHtoD"));
    return address;
  }
  absl::StatusOr<std::vector<double>> Halves(uint64_t address,
                                             int64_t count) const {
    std::string bytes(static_cast<size_t>(count) * 2, '\0');
    RETURN_IF_ERROR(Check(api_.MemcpyDtoH(bytes.data(), address, bytes.size()),
                          "cuMemcpyDtoH"));
    return BytesToValues(bytes, DType::kF16);
  }
  absl::Status Check(cuda::Result result, const char* what) const {
    if (result == cuda::kSuccess) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(what, " gives ", result));
  }

 private:
  const cuda::Api& api_;
};

// A workload of two inputs and an output, through its launcher.
class OwnKernel {
 public:
  static absl::StatusOr<std::unique_ptr<OwnKernel>> Make(
      const Space& space, const std::string& schedule, const std::string& name,
      const std::string& folder) {
    const Target& target = space.context().target;
    ASSIGN_OR_RETURN(const Module module, CompilePart(space, schedule, name));
    LauncherRequest request{.file = name, .name = name};
    request.functions = {{&module, "bench", "a race"}};
    ASSIGN_OR_RETURN(request.loadable, LinkParts({module}, target));
    ASSIGN_OR_RETURN(const std::vector<LauncherFile> files,
                     FindLauncher(target.kind)->write(request));
    const std::string stem = absl::StrCat(folder, "/", name);
    for (const LauncherFile& file : files) {
      std::ofstream(stem + file.extension, std::ios::binary) << file.bytes;
    }
    const std::string command =
        absl::StrCat("cc -shared -fPIC '", stem, ".c' -o '", stem, ".so' -ldl");
    if (std::system(command.c_str()) != 0) {
      return absl::UnavailableError("failed: " + command);
    }
    std::unique_ptr<OwnKernel> kernel(new OwnKernel);
    RETURN_IF_ERROR(kernel->Load(stem + ".so", name));
    return kernel;
  }

  absl::Status Queue(const std::vector<uint64_t>& tensors) const {
    const auto at = [&](int i) { return reinterpret_cast<void*>(tensors[i]); };
    const int code = launch_(handle_, at(0), at(1), at(2), nullptr);
    if (code == 0) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("launch: ", code, ": ", message_(code)));
  }

 private:
  absl::Status Load(const std::string& path, const std::string& name) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return absl::UnavailableError(dlerror());
    const auto find = [&](const char* suffix) {
      return dlsym(library, (name + suffix).c_str());
    };
    const auto open =
        reinterpret_cast<int (*)(void**, int, void*)>(find("_open"));
    launch_ = reinterpret_cast<decltype(launch_)>(find("_launch"));
    message_ = reinterpret_cast<decltype(message_)>(find("_message"));
    const int code = open(&handle_, 0, nullptr);
    if (code == 0) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("open: ", code, ": ", message_(code)));
  }

  void* handle_ = nullptr;
  int (*launch_)(void*, void*, void*, void*, void*) = nullptr;
  const char* (*message_)(int) = nullptr;
};

// Time of `calls` calls, by two events around them.
absl::StatusOr<double> TimeCalls(const cuda::Api& api, const QueueCall& call,
                                 int calls) {
  const GpuMemory memory(api);
  cuda::Event from = nullptr, to = nullptr;
  RETURN_IF_ERROR(memory.Check(api.EventCreate(&from, 0), "cuEventCreate"));
  RETURN_IF_ERROR(memory.Check(api.EventCreate(&to, 0), "cuEventCreate"));
  RETURN_IF_ERROR(
      memory.Check(api.EventRecord(from, nullptr), "cuEventRecord"));
  for (int i = 0; i < calls; ++i) RETURN_IF_ERROR(call());
  RETURN_IF_ERROR(memory.Check(api.EventRecord(to, nullptr), "cuEventRecord"));
  RETURN_IF_ERROR(memory.Check(api.CtxSynchronize(), "cuCtxSynchronize"));
  float milliseconds = 0;
  RETURN_IF_ERROR(memory.Check(api.EventElapsedTime(&milliseconds, from, to),
                               "cuEventElapsedTime"));
  api.EventDestroy(from);
  api.EventDestroy(to);
  return milliseconds * 1e6 / calls;
}

struct Entry {
  std::string name;
  QueueCall call;
};

absl::StatusOr<std::vector<Contestant>> Race(const cuda::Api& api,
                                             const std::vector<Entry>& entries,
                                             int rounds) {
  std::vector<int> calls;
  std::vector<std::vector<double>> times(entries.size());
  for (const Entry& entry : entries) {
    RETURN_IF_ERROR(TimeCalls(api, entry.call, 1).status());  // warm
    ASSIGN_OR_RETURN(const double ns, TimeCalls(api, entry.call, 1));
    calls.push_back(static_cast<int>(
        std::clamp(kTurnNs / std::max(ns, 1.0), 1.0, double{kMaxCalls})));
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < entries.size(); ++i) {
      ASSIGN_OR_RETURN(const double ns,
                       TimeCalls(api, entries[i].call, calls[i]));
      times[i].push_back(ns);
    }
  }
  std::vector<Contestant> contestants;
  for (size_t i = 0; i < entries.size(); ++i) {
    contestants.push_back({entries[i].name, Median(times[i])});
  }
  return contestants;
}

struct Setting {
  const cuda::Gpu* gpu = nullptr;
  Workload workload;
  std::unique_ptr<Space> space;
  std::vector<uint64_t> tensors;  // of ours
  std::string weights;            // bytes of the second input
};

absl::StatusOr<Setting> Prepare(const std::string& text, const Target& target) {
  Setting setting;
  ASSIGN_OR_RETURN(setting.gpu, cuda::Gpu::Open(""));
  ASSIGN_OR_RETURN(setting.workload, ParseWorkload(text));
  ASSIGN_OR_RETURN(Space space, CreateSpace(setting.workload, target, 1));
  setting.space = std::make_unique<Space>(std::move(space));
  const GpuMemory memory(*setting.gpu->api);
  for (const int t : setting.workload.TensorsWithRole(TensorRole::kInput)) {
    const TensorDecl& tensor = setting.workload.tensors[t];
    setting.weights.assign(tensor.Elements() * 2, '\0');
    FillInput(1, static_cast<int>(setting.tensors.size()), tensor.Elements(),
              tensor.dtype, setting.weights.data());
    ASSIGN_OR_RETURN(const uint64_t address, memory.Upload(setting.weights));
    setting.tensors.push_back(address);
  }
  ASSIGN_OR_RETURN(
      const uint64_t output,
      memory.Allocate(setting.workload.tensors.back().Elements() * 2));
  setting.tensors.push_back(output);
  if (setting.tensors.size() != kTensors) {
    return absl::InvalidArgumentError("a race has two inputs and an output");
  }
  return setting;
}

// Adds default and tuned schedule before the peer, races all and compares the
// default's output with the peer's at `peer_output`.
absl::StatusOr<GpuRace> Finish(const Setting& setting, Entry peer,
                               uint64_t peer_output,
                               const RaceOptions& options) {
  const Space& space = *setting.space;
  std::vector<std::pair<std::string, std::string>> schedules = {
      {"Regatta default", space.Print(space.Default())}};
  if (!options.schedule.empty()) {
    const auto carried = space.CarryOver(options.schedule);
    if (!carried) {
      return absl::InvalidArgumentError("the tuned schedule does not fit: " +
                                        options.schedule);
    }
    schedules.emplace_back("Regatta tuned", space.Print(*carried));
  }
  std::vector<std::unique_ptr<OwnKernel>> kernels;
  std::vector<Entry> entries;
  for (const auto& [name, schedule] : schedules) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<OwnKernel> kernel,
        OwnKernel::Make(space, schedule, absl::StrCat("race", kernels.size()),
                        options.folder));
    entries.push_back({name, [own = kernel.get(), &setting] {
                         return own->Queue(setting.tensors);
                       }});
    kernels.push_back(std::move(kernel));
  }
  entries.push_back(std::move(peer));
  GpuRace race{.workload = setting.workload.text,
               .flops = setting.workload.Flops()};
  ASSIGN_OR_RETURN(race.contestants,
                   Race(*setting.gpu->api, entries, options.rounds));
  const GpuMemory memory(*setting.gpu->api);
  const int64_t elements = setting.workload.tensors.back().Elements();
  RETURN_IF_ERROR(entries[0].call());
  ASSIGN_OR_RETURN(const std::vector<double> own,
                   memory.Halves(setting.tensors.back(), elements));
  ASSIGN_OR_RETURN(const std::vector<double> peers,
                   memory.Halves(peer_output, elements));
  double greatest = 0, difference = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    greatest = std::max(greatest, std::abs(peers[i]));
    const double one = std::abs(own[i] - peers[i]);
    difference = std::isnan(one) ? HUGE_VAL : std::max(difference, one);
  }
  race.largest_difference = greatest > 0 ? difference / greatest : HUGE_VAL;
  return race;
}

// [kh,kw,ci,co] as [co,kh,kw,ci], in elements of two bytes.
std::string OutputsFirst(const std::string& weights, int inner, int co) {
  std::string turned(weights.size(), '\0');
  for (int i = 0; i < inner; ++i) {
    for (int o = 0; o < co; ++o) {
      turned.replace(2 * (static_cast<size_t>(o) * inner + i), 2, weights,
                     2 * (static_cast<size_t>(i) * co + o), 2);
    }
  }
  return turned;
}

}  // namespace

absl::StatusOr<GpuRace> RaceMatmul(int size, const RaceOptions& options) {
  ASSIGN_OR_RETURN(const CuBlas blas, CuBlas::Open());
  ASSIGN_OR_RETURN(const Setting setting,
                   Prepare(absl::StrCat("matmul(m=", size, ",n=", size,
                                        ",k=", size, ",dtype=f16)"),
                           options.target));
  const GpuMemory memory(*setting.gpu->api);
  ASSIGN_OR_RETURN(const uint64_t output,
                   memory.Allocate(size_t{2} * size * size));
  ASSIGN_OR_RETURN(QueueCall gemm,
                   blas.Gemm(size, size, size, setting.tensors[0],
                             setting.tensors[1], output));
  return Finish(setting, {blas.version(), std::move(gemm)}, output, options);
}

absl::StatusOr<GpuRace> RaceConvolution(const RaceOptions& options) {
  const GpuConvolution shape = {16, 56, 56, 64, 64, 3};
  ASSIGN_OR_RETURN(const CuDnn dnn, CuDnn::Open());
  ASSIGN_OR_RETURN(
      const Setting setting,
      Prepare("conv2d(n=16,h=56,w=56,ci=64,co=64,kh=3,kw=3,pad=1,dtype=f16)",
              options.target));
  const GpuMemory memory(*setting.gpu->api);
  ASSIGN_OR_RETURN(
      const uint64_t weights,
      memory.Upload(OutputsFirst(
          setting.weights, shape.kernel * shape.kernel * shape.ci, shape.co)));
  ASSIGN_OR_RETURN(
      const uint64_t output,
      memory.Allocate(size_t{2} * shape.n * shape.h * shape.w * shape.co));
  ASSIGN_OR_RETURN(
      QueueCall convolution,
      dnn.Convolution(shape, setting.tensors[0], weights, output,
                      [&](size_t bytes) { return memory.Allocate(bytes); }));
  return Finish(setting, {dnn.version(), std::move(convolution)}, output,
                options);
}

}  // namespace regatta::bench

// What deploy/gpu-check asks of a CUDA device; each part prints one JSON
// document.
//
//   devices    what the driver has
//   libraries  versions of cuBLAS and cuDNN, or why there are none
//   bits       fixed kernels on the device and in the PTX simulator: results,
//              times, counts
//   once       the same kernels once, for a profiler
//   race       matmul and convolution beside cuBLAS and cuDNN
//
// Exit code 3 where there is no CUDA device, 1 when anything failed or differs.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/compile.h"
#include "compiler/ptxsim/cost_model.h"
#include "device_agent/build/device_target.h"
#include "device_agent/cuda_sim/gpu_list.h"
#include "device_agent/run/cuda_device.h"
#include "tests/bench/gpu_bits.h"
#include "tests/bench/gpu_peers.h"
#include "tests/bench/gpu_race.h"

namespace regatta::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kNoDevice = 3;

struct Options {
  std::string driver;
  bool small = false;
  int schedules = 4;
  int size = 4096;
  int rounds = 21;
  std::string matmul_schedule, convolution_schedule;
  std::string folder = "/tmp";
};

void Print(const Json& document) {
  std::printf("%s\n", document.dump(1).c_str());
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "gpu_check: %s\n",
               std::string(status.message()).c_str());
  return 1;
}

absl::StatusOr<v1::BoardDevice> FirstDevice() {
  ASSIGN_OR_RETURN(const v1::DeviceList list, ListCudaDevices());
  if (list.devices().empty()) return absl::NotFoundError("no CUDA device here");
  return list.devices(0);
}

absl::StatusOr<Target> TargetOf(const v1::BoardDevice& device) {
  ASSIGN_OR_RETURN(const Target target, TargetOfDevice(device));
  return CompleteTarget(target);
}

int Devices() {
  const auto devices = ListCudaDevices();
  if (!devices.ok()) return Fail(devices.status());
  Json list = Json::array();
  for (const v1::BoardDevice& device : devices->devices()) {
    list.push_back({{"name", device.name()},
                    {"architecture", device.architecture()},
                    {"processors", device.compute_units()},
                    {"driver", device.driver_version()},
                    {"memory_bytes", device.memory_bytes()},
                    {"simulated", device.simulated()}});
  }
  Print({{"devices", list}});
  return list.empty() ? kNoDevice : 0;
}

int Libraries() {
  const auto blas = CuBlas::Open();
  const auto dnn = CuDnn::Open();
  const auto text = [](const auto& library) {
    return library.ok() ? library->version()
                        : std::string(library.status().message());
  };
  Print({{"cublas", {{"found", blas.ok()}, {"text", text(blas)}}},
         {"cudnn", {{"found", dnn.ok()}, {"text", text(dnn)}}}});
  return 0;
}

Json CountersDocument(const ptxsim::Counters& counters) {
  return {{"issue_slots", counters.issue_slots},
          {"shared_wavefronts", counters.shared_wavefronts},
          {"global_load_sectors", counters.global_load_sectors},
          {"global_store_sectors", counters.global_store_sectors},
          {"thread_fmas", counters.thread_fmas}};
}

// The model's numbers of one kernel; nulls for a GPU that it does not know.
Json KernelDocument(const testing::SimulatedKernel& kernel,
                    const absl::StatusOr<cuda_sim::Gpu>& gpu) {
  Json document = {{"entry", kernel.entry},
                   {"counters", CountersDocument(kernel.report.counters)},
                   {"model_cycles", nullptr},
                   {"model_ns", nullptr},
                   {"bound", nullptr}};
  if (!gpu.ok()) return document;
  const auto cost = ptxsim::EstimateCost(
      gpu->model, kernel.block, kernel.report.blocks, kernel.report.counters);
  if (!cost.ok()) return document;
  document["model_cycles"] = cost->cycles;
  document["model_ns"] = cost->nanoseconds;
  document["bound"] = std::string(cost->bound);
  return document;
}

int Bits(const Options& options, bool once) {
  const auto device = FirstDevice();
  if (absl::IsNotFound(device.status())) return kNoDevice;
  if (!device.ok()) return Fail(device.status());
  const auto target = TargetOf(*device);
  if (!target.ok()) return Fail(target.status());
  absl::StatusOr<cuda_sim::Gpu> gpu = absl::NotFoundError("no model");
  if (auto gpus = cuda_sim::ChooseGpus(device->architecture()); gpus.ok()) {
    gpu = gpus->front();
  }
  bool good = true;
  Json list = Json::array();
  for (const KernelCheck& check : CheckKernels(
           CheckedWorkloads(options.small), *target, options.schedules, once)) {
    good = good && check.verdict != Verdict::kFailed &&
           check.verdict != Verdict::kDiffers;
    Json kernels = Json::array();
    for (const testing::SimulatedKernel& kernel : check.kernels) {
      kernels.push_back(KernelDocument(kernel, gpu));
    }
    list.push_back({{"name", check.name},
                    {"workload", check.workload},
                    {"schedule", check.schedule},
                    {"verdict", std::string(VerdictName(check.verdict))},
                    {"detail", check.detail},
                    {"approximates", check.approximates},
                    {"elements", check.elements},
                    {"differing", check.differing},
                    {"largest_difference", check.largest},
                    {"device_ns", check.device_ns},
                    {"kernels", kernels}});
  }
  Print({{"device", device->name()},
         {"target", target->ToString()},
         {"model", gpu.ok() ? Json(gpu->name) : Json(nullptr)},
         {"checks", list}});
  return good ? 0 : 1;
}

Json RaceDocument(const absl::StatusOr<GpuRace>& race) {
  if (!race.ok()) {
    return {{"skipped", absl::IsNotFound(race.status())},
            {"error", std::string(race.status().message())}};
  }
  Json contestants = Json::array();
  for (const Contestant& one : race->contestants) {
    contestants.push_back({{"name", one.name}, {"ns", one.ns}});
  }
  return {{"workload", race->workload},
          {"flops", race->flops},
          {"largest_difference", race->largest_difference},
          {"contestants", contestants}};
}

int Race(const Options& options) {
  const auto device = FirstDevice();
  if (absl::IsNotFound(device.status())) return kNoDevice;
  if (!device.ok()) return Fail(device.status());
  const auto target = TargetOf(*device);
  if (!target.ok()) return Fail(target.status());
  RaceOptions race{.target = *target,
                   .schedule = options.matmul_schedule,
                   .folder = options.folder,
                   .rounds = options.rounds};
  const auto matmul = RaceMatmul(options.size, race);
  race.schedule = options.convolution_schedule;
  const auto convolution = RaceConvolution(race);
  Print({{"races", {RaceDocument(matmul), RaceDocument(convolution)}}});
  const auto broken = [](const auto& result) {
    return !result.ok() && !absl::IsNotFound(result.status());
  };
  return broken(matmul) || broken(convolution) ? 1 : 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("What deploy/gpu-check asks of a CUDA device");
  app.require_subcommand(1);
  app.add_option("--cuda-driver", options.driver,
                 "Library to use as CUDA's driver")
      ->check(CLI::ExistingFile);
  CLI::App* devices = app.add_subcommand("devices", "What the driver has");
  CLI::App* libraries =
      app.add_subcommand("libraries", "Versions of cuBLAS and cuDNN");
  CLI::App* bits =
      app.add_subcommand("bits", "Kernels on the device and simulated");
  CLI::App* once = app.add_subcommand("once", "The same, once, for a profiler");
  for (CLI::App* part : {bits, once}) {
    part->add_flag("--small", options.small, "Fewer and smaller kernels");
    part->add_option("--schedules", options.schedules, "Of each workload")
        ->check(CLI::Range(1, 100));
  }
  CLI::App* race = app.add_subcommand("race", "Beside cuBLAS and cuDNN");
  race->add_option("--size", options.size, "Of the matmul, in each dimension")
      ->check(CLI::Range(16, 16384));
  race->add_option("--rounds", options.rounds, "Turns of each contestant")
      ->check(CLI::Range(1, 1000));
  race->add_option("--matmul-schedule", options.matmul_schedule,
                   "What tuning found");
  race->add_option("--conv-schedule", options.convolution_schedule,
                   "What tuning found");
  race->add_option("--folder", options.folder, "For what is compiled")
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  if (!options.driver.empty()) cuda::UseDriver(options.driver);
  if (devices->parsed()) return Devices();
  if (libraries->parsed()) return Libraries();
  if (race->parsed()) return Race(options);
  return Bits(options, once->parsed());
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) { return regatta::bench::Main(argc, argv); }

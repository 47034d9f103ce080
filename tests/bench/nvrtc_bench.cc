// How long NVRTC takes for a candidate: random schedules of one workload, built
// as build workers build them, two at a time as two build workers do.
//
// Exit code 1 when the median is above the limit of 400 ms, 2 when there is no
// NVRTC.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/clock.h"
#include "base/random.h"
#include "base/robust_stats.h"
#include "base/status_macros.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/compile.h"
#include "compiler/ops/op.h"
#include "device_agent/build/compiler_module_source.h"

namespace regatta::bench {
namespace {

constexpr double kMostMedianMs = 400;

struct Options {
  std::string workload = "matmul(m=1024,n=1024,k=1024)";
  std::string target = "cuda,mcpu=sm_80";
  int schedules = 60;
  int at_a_time = 2;
  uint64_t seed = 1;
};

struct Times {
  std::vector<double> built_ms, refused_ms;
  std::string failure;  // the first that is neither
};

absl::StatusOr<std::vector<v1::ModuleRequest>> Requests(
    const Options& options) {
  ASSIGN_OR_RETURN(Workload workload, ParseWorkload(options.workload));
  ASSIGN_OR_RETURN(Target target, ParseTarget(options.target));
  ASSIGN_OR_RETURN(target, CompleteTarget(target));
  ASSIGN_OR_RETURN(const Space space,
                   CreateSpace(std::move(workload), target, 1));
  Random random(options.seed);
  std::vector<v1::ModuleRequest> requests;
  for (int i = 0; i < options.schedules; ++i) {
    const std::optional<Schedule> schedule = space.Sample(random);
    if (!schedule) return absl::NotFoundError("no legal schedule was found");
    v1::ModuleRequest request;
    request.set_workload(options.workload);
    request.set_target(target.ToString());
    request.set_threads(1);
    request.mutable_schedule()->set_space(std::string(space.name()));
    request.mutable_schedule()->set_space_version(kSpaceVersion);
    request.mutable_schedule()->set_text(space.Print(*schedule));
    requests.push_back(std::move(request));
  }
  return requests;
}

Times BuildAll(const std::vector<v1::ModuleRequest>& requests, int at_a_time) {
  Times times;
  std::mutex mutex;
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    CompilerModuleSource source(RealClock());
    // A worker lives long: its first build loads the library and is not one
    // that counts.
    const absl::Status warm = source.Build(requests[0]).status();
    while (true) {
      const size_t i = next.fetch_add(1);
      if (i >= requests.size()) return;
      const SteadyTime start = RealClock().Steady();
      const auto built = source.Build(requests[i]);
      const double ms =
          absl::ToDoubleMilliseconds(RealClock().Steady() - start);
      std::lock_guard lock(mutex);
      if (built.ok()) {
        times.built_ms.push_back(ms);
      } else if (absl::IsFailedPrecondition(built.status())) {
        times.refused_ms.push_back(ms);
      } else if (times.failure.empty()) {
        times.failure = std::string(built.status().message());
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < at_a_time; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return times;
}

int Run(const Options& options) {
  const auto nvrtc = cuda::Nvrtc::Load();
  if (!nvrtc.ok()) {
    std::fprintf(stderr, "%s\n", nvrtc.status().ToString().c_str());
    return 2;
  }
  const auto requests = Requests(options);
  if (!requests.ok()) {
    std::fprintf(stderr, "%s\n", requests.status().ToString().c_str());
    return 1;
  }
  const SteadyTime start = RealClock().Steady();
  const Times times = BuildAll(*requests, options.at_a_time);
  const double seconds = absl::ToDoubleSeconds(RealClock().Steady() - start);
  if (!times.failure.empty()) {
    std::fprintf(stderr, "a build failed: %s\n", times.failure.c_str());
    return 1;
  }
  // A refusal for want of registers has taken NVRTC as long as any other.
  std::vector<double> all = times.built_ms;
  all.insert(all.end(), times.refused_ms.begin(), times.refused_ms.end());
  const double median = Median(all);
  std::printf(
      "%s, %s: %s, %d at a time\n"
      "  %zu random schedules, of which %zu refused for their registers\n"
      "  a build: median %.0f ms, 9 of 10 below %.0f ms, slowest %.0f ms\n"
      "  %.1f builds a second\n"
      "  required: median below %.0f ms: %s\n",
      options.workload.c_str(), options.target.c_str(),
      (*nvrtc)->version().c_str(), options.at_a_time, all.size(),
      times.refused_ms.size(), median, Quantile(all, 0.9), Quantile(all, 1),
      static_cast<double>(all.size()) / seconds, kMostMedianMs,
      median < kMostMedianMs ? "pass" : "MISS");
  return median < kMostMedianMs ? 0 : 1;
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) {
  regatta::bench::Options options;
  CLI::App app("How long NVRTC takes for a candidate");
  app.add_option("--workload", options.workload, "What is computed");
  app.add_option("--target", options.target, "For which GPU");
  app.add_option("--schedules", options.schedules, "How many")
      ->check(CLI::Range(1, 100000));
  app.add_option("--at-a-time", options.at_a_time, "Builds side by side")
      ->check(CLI::Range(1, 64));
  app.add_option("--seed", options.seed, "Of the schedules");
  CLI11_PARSE(app, argc, argv);
  return regatta::bench::Run(options);
}

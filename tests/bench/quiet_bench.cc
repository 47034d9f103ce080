// What an agent's silence is worth to a kernel that is being timed: bursts of
// blocks of one small kernel, pinned to one core, in turn with an agent that
// sends results and heartbeats meanwhile over gRPC to a tracker in this
// process, and with one that is silent until the burst is over.
//
// Prints for each the median, the spread (p90 / p10 - 1) and the slowest block
// against the median, and the ratio of the spreads. Nothing fails.
#include <grpcpp/grpcpp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "device_agent/loop/agent_runtime.h"
#include "device_agent/probe/kernels.h"
#include "device_agent/tracker_client.h"
#include "tests/device_agent/loop/fake_spool_storage.h"
#include "tests/support/fake_fleet_service.h"
#include "tests/support/idle_runner.h"

namespace regatta::bench {
namespace {

constexpr int kBlocksPerBurst = 50;
constexpr int64_t kBlockNs = 1'000'000;

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q *
                                    static_cast<double>(values.size() - 1))];
}

double Print(const char* name, const std::vector<double>& blocks_ns) {
  const double median = Quantile(blocks_ns, 0.5);
  const double spread = Quantile(blocks_ns, 0.9) / Quantile(blocks_ns, 0.1) - 1;
  std::printf(
      "%-8s %zu blocks, median %.1f us, spread %.2f %%, slowest %+.1f %%"
      "\n",
      name, blocks_ns.size(), median / 1e3, spread * 100,
      (Quantile(blocks_ns, 1) / median - 1) * 100);
  return spread;
}

// `per_s` results a second come in while `bursts` of each kind are timed.
int Measure(int cpu, int per_s, int bursts) {
  FakeFleetService tracker;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&tracker);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  TrackerClient client(absl::StrCat("127.0.0.1:", port));
  IdleRunner runner;
  FakeDisk disk;
  auto spool =
      Spool::Open(std::make_unique<FakeSpoolStorage>(&disk), SpoolLimits{});
  if (server == nullptr || !spool.ok()) return 1;
  AgentLoop::Options options;
  options.hello.set_agent_id("board");
  AgentRuntime agent(options, &RealClock(), Random(1), *std::move(spool),
                     &client);
  agent.Start(&runner);
  std::atomic<bool> stop = false;
  std::thread source([&, sink = agent.ResultSink()] {
    for (int64_t i = 0; !stop; ++i) {
      v1::TrialResult result;
      result.mutable_spec()->set_trial_id(absl::StrCat(i));
      result.set_outcome(v1::OUTCOME_COMPILE_ERROR);
      result.set_detail(std::string(1000, 'x'));
      sink("a", std::move(result), false);
      std::this_thread::sleep_for(std::chrono::microseconds(1'000'000 / per_s));
    }
  });
  std::vector<double> speaking_ns, silent_ns;
  std::thread timing([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(cpu), &set);
    sched_setaffinity(0, sizeof(set), &set);
    const FmaKernel kernel = BestFmaKernel();
    const int64_t iterations = CalibrateFma(kernel, kBlockNs);
    for (int burst = 0; burst < 2 * bursts; ++burst) {
      const bool silent = burst % 2 == 1;
      if (silent) agent.SetWindow("board", absl::Seconds(2));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      for (int i = 0; i < kBlocksPerBurst; ++i) {
        (silent ? silent_ns : speaking_ns)
            .push_back(static_cast<double>(TimeFma(kernel, iterations)));
      }
      agent.SetWindow("board", absl::ZeroDuration());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  timing.join();
  stop = true;
  source.join();
  agent.Stop();
  server->Shutdown(std::chrono::system_clock::now());
  std::printf("%d results a second, %lld delivered\n", per_s,
              static_cast<long long>(tracker.ResultCount()));
  const double speaking = Print("speaking", speaking_ns);
  const double silent = Print("silent", silent_ns);
  std::printf("spread, silent to speaking: %.2f\n", silent / speaking);
  return 0;
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) {
  CLI::App app("What an agent's silence is worth to a kernel being timed");
  int cpu = 1, per_s = 200, bursts = 100;
  app.add_option("--cpu", cpu, "Processor to time on")->capture_default_str();
  app.add_option("--results-per-s", per_s, "Results that come in, count")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--bursts", bursts, "Of 50 blocks, of each kind, count")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return regatta::bench::Measure(cpu, per_s, bursts);
}

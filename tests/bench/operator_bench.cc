// Every operator tuned on this machine, beside what the machine can do: a table
// with a row per operator and shape. tests/bench/operators calls this.
//
// Contractions are held to 0.7 of the peak of multiply-adds, everything else to
// 0.6 of the bandwidth for the bytes that it must move: all that the inputs
// hold (of a slice, what it takes) and all of the outputs, once. Peak and
// bandwidth are measured in turns with the kernels, all by the time that the
// thread spends on its core, so that a busy machine can be used. The default
// schedule is held to half of the tuned one.
//
// Exit code 1 when a row misses its floor or gives a wrong result.
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <regex>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/clock.h"
#include "base/robust_stats.h"
#include "device_agent/probe/kernels.h"
#include "device_agent/probe/machine.h"
#include "tests/bench/operator_rows.h"
#include "tests/bench/tuned_operator.h"

namespace regatta::bench {
namespace {

constexpr double kComputeFloor = 0.7;
constexpr double kMemoryFloor = 0.6;
constexpr double kDefaultFloor = 0.5;
constexpr int64_t kPeakNs = 2'000'000;
// A turn takes at least this long.
constexpr double kTurnSeconds = 2e-3;

struct Options {
  int trials = 100;
  int rounds = 21;
  uint64_t seed = 1;
  std::string only;
  bool schedules = false;
};

struct Result {
  double tuned_ms = 0, default_ms = 0;
  double rate = 0;           // of the tuned kernel: flops or bytes per second
  double share = 0;          // of the peak or the bandwidth
  double default_share = 0;  // of the tuned speed
};

double Seconds(const std::function<void()>& call, int calls) {
  const SteadyTime start = ThreadClock().Steady();
  for (int i = 0; i < calls; ++i) call();
  return absl::ToDoubleSeconds(ThreadClock().Steady() - start) / calls;
}

// What the row must read.
std::vector<Stretch> Reads(const OperatorRow& row,
                           std::vector<Stretch> inputs) {
  if (row.rows == 0) return inputs;
  std::vector<Stretch> reads;
  for (int64_t i = 0; i < row.rows; ++i) {
    reads.push_back(
        {inputs[0].data + row.skip + i * row.row_step, row.row_bytes});
  }
  return reads;
}

int64_t Bytes(const std::vector<Stretch>& stretches) {
  int64_t bytes = 0;
  for (const Stretch& stretch : stretches) bytes += stretch.bytes;
  return bytes;
}

Result Race(const OperatorRow& row, const Options& options,
            TunedOperator& tuned) {
  const std::vector<Stretch> reads = Reads(row, tuned.Inputs());
  const std::vector<Stretch> writes = tuned.Outputs();
  const FmaKernel fma = BestFmaKernel();
  const int64_t iterations = CalibrateFma(fma, kPeakNs);
  const bool compute = row.bound == OperatorRow::Bound::kCompute;
  const double work =
      compute ? row.flops : static_cast<double>(Bytes(reads) + Bytes(writes));
  const std::vector<std::function<void()>> calls = {[&] { tuned.RunTuned(); },
                                                    [&] { tuned.RunDefault(); },
                                                    [&] {
                                                      if (compute) {
                                                        fma.run(iterations);
                                                      } else {
                                                        Stream(reads, writes);
                                                      }
                                                    }};
  std::vector<int> repeats;
  for (const auto& call : calls) {
    call();
    repeats.push_back(std::clamp(
        static_cast<int>(std::ceil(kTurnSeconds / Seconds(call, 1))), 1, 1000));
  }
  std::vector<std::vector<double>> seconds(calls.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < calls.size(); ++i) {
      const size_t at = round % 2 == 0 ? i : calls.size() - 1 - i;
      seconds[at].push_back(Seconds(calls[at], repeats[at]));
    }
  }
  const double probe_work =
      compute ? fma.flops_per_iteration * static_cast<double>(iterations)
              : work;
  Result result;
  result.tuned_ms = Median(seconds[0]) * 1e3;
  result.default_ms = Median(seconds[1]) * 1e3;
  result.rate = work / Median(seconds[0]);
  result.share = PairedRatio(seconds[2], seconds[0]).ratio * work / probe_work;
  result.default_share = PairedRatio(seconds[0], seconds[1]).ratio;
  return result;
}

// Whether the row reaches its floors.
absl::StatusOr<bool> RunRow(const OperatorRow& row, const Options& options,
                            const Target& target, MachineHints hints) {
  auto tuned = TunedOperator::Create(row.workload, target, hints);
  if (!tuned.ok()) return tuned.status();
  if (const absl::Status status = (*tuned)->Tune(options.trials, options.seed);
      !status.ok()) {
    return status;
  }
  const Result r = Race(row, options, **tuned);
  const bool compute = row.bound == OperatorRow::Bound::kCompute;
  const double floor = compute ? kComputeFloor : kMemoryFloor;
  const bool pass = r.share >= floor && r.default_share >= kDefaultFloor;
  std::printf("%-24s %8.2f %8.2f %8.2f %8.1f %-7s %5.2f %5.2f  %s\n", row.name,
              r.default_ms, r.tuned_ms, r.default_share, r.rate * 1e-9,
              compute ? "GFLOP/s" : "GB/s", r.share, floor,
              pass ? "pass" : "MISS");
  if (options.schedules) {
    std::printf("    tuned   %s\n    default %s\n",
                (*tuned)->tuned_schedule().c_str(),
                (*tuned)->default_schedule().c_str());
  }
  std::fflush(stdout);
  return pass;
}

// This thread on the last core, whatever it starts on any.
void Pin(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpus.back()), &set);
  sched_setaffinity(0, sizeof(set), &set);
}

int Main(int argc, char** argv) {
  CLI::App app("Every operator, tuned, beside this machine's limits");
  Options options;
  app.add_option("--trials", options.trials, "Candidates a row");
  app.add_option("--rounds", options.rounds, "Interleaved rounds a row");
  app.add_option("--seed", options.seed, "Of the search");
  app.add_option("--only", options.only, "Rows whose name this pattern finds");
  app.add_flag("--schedules", options.schedules, "Print schedules");
  CLI11_PARSE(app, argc, argv);
  const auto target = HostTarget();
  if (!target.ok()) {
    std::fprintf(stderr, "operator_bench: %s\n",
                 std::string(target.status().message()).c_str());
    return 1;
  }
  Pin(AllowedCpus());
  std::printf("%s\n%d trials a row, %d rounds, medians, one thread, f32\n",
              target->ToString().c_str(), options.trials, options.rounds);
  std::printf("%-24s %8s %8s %8s %16s %5s %5s\n", "", "default", "tuned",
              "default", "tuned", "share", "");
  std::printf("%-24s %8s %8s %8s %16s %5s %5s\n", "operator", "ms", "ms",
              "/ tuned", "rate", "", "floor");
  int missed = 0;
  const std::regex only(options.only);
  for (const OperatorRow& row : OperatorRows()) {
    if (!std::regex_search(row.name, only)) continue;
    const auto pass = RunRow(row, options, *target, MachineHints());
    if (!pass.ok()) {
      std::printf("%-24s %s\n", row.name,
                  std::string(pass.status().message()).c_str());
    }
    if (!pass.ok() || !*pass) ++missed;
  }
  std::printf("%d rows miss their floors\n", missed);
  return missed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) { return regatta::bench::Main(argc, argv); }

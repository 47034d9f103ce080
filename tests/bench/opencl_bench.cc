// A schedule of matmul 512 beside kernels tiled by hand, on an OpenCL device:
// all in one process, in turns (A B C, C B A, ...), each timed by the device's
// clock; medians, ratios. tests/bench/opencl tunes and calls this.
//
// Fails (exit code 1) when a result is wrong, when the tuned schedule stays
// under 90 % of the best peer, or the default under 30 % of the tuned one.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/robust_stats.h"
#include "base/status_macros.h"
#include "compiler/compile.h"
#include "compiler/ops/op.h"
#include "device_agent/run/opencl_runtime.h"
#include "tests/bench/opencl_peers.h"

namespace regatta::bench {
namespace {

constexpr int kN = 512;
constexpr double kFlops = 2.0 * kN * kN * kN;
constexpr double kTunedFloor = 0.90;
constexpr double kDefaultFloor = 0.30;
constexpr int64_t kTurnNs = 5'000'000;

struct Contestant {
  std::string name;
  Module module;
  std::unique_ptr<ModuleRuntime> runtime;
  int64_t calls = 1;                 // of a turn
  std::vector<double> seconds = {};  // per call, one entry a turn

  double Rate() const { return kFlops / Median(seconds); }
};

absl::Status Check(const std::string& name, const MaybeFailure& failure) {
  if (!failure) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(name, ": ", failure->detail()));
}

class Race {
 public:
  Race() {
    for (const char* name : {"A", "B"}) {
      auto memory = GuardedMemory::Allocate(name, 4 * kN * kN, 64);
      Random random(inputs_.size() + 1);
      auto* data = reinterpret_cast<float*>(memory->data());
      for (int i = 0; i < kN * kN; ++i) {
        data[i] = static_cast<float>(random.Unit() * 2 - 1);
      }
      inputs_.push_back(*std::move(memory));
    }
  }

  // Builds, calls once and compares. Runtimes refer to their modules, so the
  // field does not move any more.
  absl::Status Join(std::string name, Module module) {
    field_.push_back(std::make_unique<Contestant>(
        Contestant{std::move(name), std::move(module), nullptr}));
    Contestant& c = *field_.back();
    RuntimeOrFailure made =
        CreateOpenClRuntime(c.module, {.clock = &RealClock()});
    RETURN_IF_ERROR(Check(c.name, made.failure));
    c.runtime = std::move(made.runtime);
    RETURN_IF_ERROR(Check(c.name, c.runtime->SetInputs(inputs_)));
    RETURN_IF_ERROR(Check(c.name, c.runtime->Poison(0xFF)));
    RETURN_IF_ERROR(Check(c.name, c.runtime->Call()));
    std::vector<const void*> outputs;
    RETURN_IF_ERROR(Check(c.name, c.runtime->ReadOutputs(&outputs)));
    RETURN_IF_ERROR(Compare(c.name, static_cast<const float*>(outputs[0])));
    int64_t once_ns = 0;
    for (int i = 0; i < 2; ++i) {
      RETURN_IF_ERROR(Check(c.name, c.runtime->TimeCalls(1, &once_ns)));
    }
    c.calls = std::max<int64_t>(1, kTurnNs / std::max<int64_t>(1, once_ns));
    return absl::OkStatus();
  }

  absl::Status Run(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < field_.size(); ++i) {
        Contestant& c = *field_[round % 2 == 0 ? i : field_.size() - 1 - i];
        int64_t ns = 0;
        RETURN_IF_ERROR(Check(c.name, c.runtime->TimeCalls(c.calls, &ns)));
        c.seconds.push_back(static_cast<double>(ns) * 1e-9 /
                            static_cast<double>(c.calls));
      }
    }
    return absl::OkStatus();
  }

  const std::vector<std::unique_ptr<Contestant>>& field() const {
    return field_;
  }

 private:
  absl::Status Compare(const std::string& name, const float* c) const {
    const auto* a = reinterpret_cast<const float*>(inputs_[0].data());
    const auto* b = reinterpret_cast<const float*>(inputs_[1].data());
    // Every row, and in it a column that moves.
    for (int i = 0; i < kN; ++i) {
      for (int j = i % 7; j < kN; j += 7) {
        double sum = 0;
        for (int k = 0; k < kN; ++k) {
          sum += static_cast<double>(a[i * kN + k]) * b[k * kN + j];
        }
        if (!(std::fabs(c[i * kN + j] - sum) <= 1e-3)) {
          return absl::InternalError(absl::StrCat(
              name, ": C[", i, ",", j, "] is ", c[i * kN + j], ", not ", sum));
        }
      }
    }
    return absl::OkStatus();
  }

  std::vector<GuardedMemory> inputs_;
  std::vector<std::unique_ptr<Contestant>> field_;
};

struct Options {
  std::string target = "opencl", tuned;
  std::vector<std::string> more;
  int rounds = 41;
};

absl::StatusOr<bool> Run(const Options& options) {
  ASSIGN_OR_RETURN(
      const Workload workload,
      ParseWorkload(absl::StrCat("matmul(m=", kN, ",n=", kN, ",k=", kN, ")")));
  ASSIGN_OR_RETURN(Target target, ParseTarget(options.target));
  ASSIGN_OR_RETURN(target, CompleteTarget(target));
  ASSIGN_OR_RETURN(const Space space, CreateSpace(workload, target, 1));
  Race race;
  for (const HandTiles& tiles : Peers()) {
    RETURN_IF_ERROR(race.Join(tiles.Name(), HandTiled(tiles, kN)));
  }
  const size_t peers = race.field().size();
  std::vector<std::pair<std::string, std::string>> own = {
      {"default", space.Print(space.Default())}};
  if (!options.tuned.empty()) own.insert(own.begin(), {"tuned", options.tuned});
  for (const std::string& schedule : options.more) {
    own.emplace_back(schedule, schedule);
  }
  for (const auto& [name, schedule] : own) {
    ASSIGN_OR_RETURN(Module module, Compile(space, schedule, "matmul"));
    RETURN_IF_ERROR(race.Join(name, std::move(module)));
  }
  RETURN_IF_ERROR(race.Run(options.rounds));
  double best = 0;
  for (size_t i = 0; i < peers; ++i) {
    best = std::max(best, race.field()[i]->Rate());
  }
  std::printf("matmul 512 f32, medians of %d turns by the device's clock\n",
              options.rounds);
  for (const auto& c : race.field()) {
    std::printf("  %-30s %8.1f GFLOP/s %8.3f of the best peer\n",
                c->name.c_str(), c->Rate() / 1e9, c->Rate() / best);
  }
  if (options.tuned.empty()) return true;
  const double tuned = race.field()[peers]->Rate();
  const double fallback = race.field()[peers + 1]->Rate();
  std::printf(
      "tuned: %.2f of the best peer, at least %.2f wanted\n"
      "default: %.2f of tuned, at least %.2f wanted\n",
      tuned / best, kTunedFloor, fallback / tuned, kDefaultFloor);
  return tuned >= kTunedFloor * best && fallback >= kDefaultFloor * tuned;
}

int Main(int argc, char** argv) {
  CLI::App app("A schedule of matmul 512 beside kernels tiled by hand");
  Options options;
  app.add_option("--target", options.target, "Target text of the device");
  app.add_option("--tuned", options.tuned, "Schedule to judge");
  app.add_option("--schedule", options.more, "Further schedules to time");
  app.add_option("--rounds", options.rounds, "Turns of each")
      ->check(CLI::Range(1, 1001));
  CLI11_PARSE(app, argc, argv);
  const absl::StatusOr<bool> held = Run(options);
  if (!held.ok()) {
    std::fprintf(stderr, "opencl_bench: %s\n",
                 std::string(held.status().message()).c_str());
    return 1;
  }
  return *held ? 0 : 1;
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) { return regatta::bench::Main(argc, argv); }

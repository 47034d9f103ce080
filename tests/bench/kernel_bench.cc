// Tuned kernels beside the vendor libraries, interleaved in one process on one
// thread: A B C A B C ..., medians, ratios. tests/bench/run makes the kernels
// and calls this.
//
// Fails (exit code 1) when OpenBLAS itself stays under 75 % of the measured
// peak, since a handicapped peer proves nothing, and when Regatta falls short of
// its floors: 90 % of OpenBLAS, 80 % of oneDNN, the default half of the tuned.
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/robust_stats.h"
#include "device_agent/probe/kernels.h"
#include "tests/bench/peers.h"

namespace regatta::bench {
namespace {

constexpr int kRounds = 41;
constexpr double kHandicapped = 0.75;
constexpr double kOpenBlasFloor = 0.90;
constexpr double kOneDnnFloor = 0.80;
constexpr double kDefaultFloor = 0.50;

struct Contestant {
  std::string name;
  Call call;
  double flops = 0;
  std::vector<double> seconds;  // per call, one entry a round
};

double Seconds(const Call& call, int calls) {
  const SteadyTime start = RealClock().Steady();
  for (int i = 0; i < calls; ++i) call();
  return absl::ToDoubleSeconds(RealClock().Steady() - start) / calls;
}

// Times all in rounds of at least 5 ms each, in an order that turns.
void Race(std::vector<Contestant>& field) {
  std::vector<int> calls;
  for (Contestant& c : field) {
    Seconds(c.call, 3);
    const double once = Seconds(c.call, 3);
    calls.push_back(std::max(1, static_cast<int>(std::ceil(5e-3 / once))));
  }
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < field.size(); ++i) {
      const size_t at = round % 2 == 0 ? i : field.size() - 1 - i;
      field[at].seconds.push_back(Seconds(field[at].call, calls[at]));
    }
  }
}

double MedianRate(const Contestant& c) { return c.flops / Median(c.seconds); }

void Print(const char* title, const std::vector<Contestant>& field,
           const std::string& base) {
  double base_rate = 0, peak = 0;
  for (const Contestant& c : field) {
    if (c.name == base) base_rate = MedianRate(c);
    if (c.name == "peak") peak = MedianRate(c);
  }
  std::printf("%s\n  %-28s %10s %10s %12s\n", title, "", "GFLOP/s", "of peak",
              ("of " + base).c_str());
  for (const Contestant& c : field) {
    std::printf("  %-28s %10.1f %10.2f %12.3f\n", c.name.c_str(),
                MedianRate(c) / 1e9, MedianRate(c) / peak,
                MedianRate(c) / base_rate);
  }
}

// The agent's own peak probe: independent multiply-adds in registers.
Contestant Peak() {
  constexpr int64_t kIterations = 100'000;
  const FmaKernel kernel = BestFmaKernel();
  return {"peak", [kernel] { kernel.run(kIterations); },
          kernel.flops_per_iteration * kIterations, {}};
}

std::vector<float> RandomTensor(size_t elements, uint64_t seed) {
  std::vector<float> data(elements);
  Random random(seed);
  for (float& x : data) x = static_cast<float>(random.Unit() * 2 - 1);
  return data;
}

// The kernel `name` of a library that `regatta compile` wrote.
using Kernel = int (*)(const float*, const float*, float*);
Kernel LoadKernel(const std::string& path, const char* name) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = handle == nullptr ? nullptr : dlsym(handle, name);
  if (symbol == nullptr) {
    std::fprintf(stderr, "kernel_bench: %s\n", dlerror());
    std::exit(1);
  }
  return reinterpret_cast<Kernel>(symbol);
}

// True when a rate reaches `floor` of another; says so when not.
bool Reaches(const Contestant& c, double floor, const Contestant& of) {
  const double share = MedianRate(c) / MedianRate(of);
  if (share >= floor) return true;
  std::fprintf(stderr, "kernel_bench: %s reaches %.2f of %s, under %.2f\n",
               c.name.c_str(), share, of.name.c_str(), floor);
  return false;
}

bool Close(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(std::fabs(a[i] - b[i]) <= 1e-3f)) return false;
  }
  return true;
}

struct Kernels {
  std::string tuned, fallback;
};

// False when the peer is not fair, a result is wrong or a floor is missed.
bool Matmul(const OpenBlas& blas, const Kernels& kernels) {
  constexpr int kN = 512;
  const auto a = RandomTensor(kN * kN, 1), b = RandomTensor(kN * kN, 2);
  std::vector<float> want(kN * kN), tuned(kN * kN), fallback(kN * kN);
  const double flops = 2.0 * kN * kN * kN;
  const Kernel tuned_kernel = LoadKernel(kernels.tuned, "tuned");
  const Kernel default_kernel = LoadKernel(kernels.fallback, "fallback");
  std::vector<Contestant> field = {
      Peak(),
      {"OpenBLAS", blas.Sgemm(kN, kN, kN, a.data(), b.data(), want.data()),
       flops, {}},
      {"Regatta tuned",
       [&] { tuned_kernel(a.data(), b.data(), tuned.data()); }, flops, {}},
      {"Regatta default",
       [&] { default_kernel(a.data(), b.data(), fallback.data()); }, flops,
       {}}};
  Race(field);
  Print("matmul(m=512,n=512,k=512), f32, one thread", field, "OpenBLAS");
  if (!Close(want, tuned) || !Close(want, fallback)) {
    std::fprintf(stderr, "kernel_bench: results differ from OpenBLAS\n");
    return false;
  }
  std::printf("  default of tuned: %.2f\n",
              MedianRate(field[3]) / MedianRate(field[2]));
  const bool fair_peer = Reaches(field[1], kHandicapped, field[0]);
  const bool tuned_holds = Reaches(field[2], kOpenBlasFloor, field[1]);
  return Reaches(field[3], kDefaultFloor, field[2]) && fair_peer && tuned_holds;
}

bool Convolution(const OneDnn& dnn, const Kernels& kernels) {
  const ConvShape s = {1, 56, 56, 64, 64, 3, 3, 1, 1};
  const auto x = RandomTensor(56 * 56 * 64, 3), w = RandomTensor(9 * 64 * 64, 4);
  std::vector<float> want(56 * 56 * 64), tuned(want), fallback(want);
  const double flops = 2.0 * 56 * 56 * 64 * 64 * 9;
  std::string impl;
  auto call = dnn.Convolution(s, x.data(), w.data(), want.data(), &impl);
  if (!call.ok()) {
    std::fprintf(stderr, "kernel_bench: %s\n",
                 std::string(call.status().message()).c_str());
    return false;
  }
  const Kernel tuned_kernel = LoadKernel(kernels.tuned, "tuned");
  const Kernel default_kernel = LoadKernel(kernels.fallback, "fallback");
  std::vector<Contestant> field = {
      Peak(),
      {"oneDNN", *call, flops, {}},
      {"Regatta tuned",
       [&] { tuned_kernel(x.data(), w.data(), tuned.data()); }, flops, {}},
      {"Regatta default",
       [&] { default_kernel(x.data(), w.data(), fallback.data()); }, flops,
       {}}};
  Race(field);
  Print("conv2d 56x56x64 to 64, 3x3, stride 1, pad 1, f32, NHWC, one thread",
        field, "oneDNN");
  std::printf("  oneDNN implementation: %s (weights reordered beforehand; "
              "Regatta packs them in every call)\n", impl.c_str());
  if (!Close(want, tuned) || !Close(want, fallback)) {
    std::fprintf(stderr, "kernel_bench: results differ from oneDNN\n");
    return false;
  }
  return Reaches(field[2], kOneDnnFloor, field[1]);
}

// Peers and kernels alike on the last core that this process may use.
void PinToOneCore() {
  cpu_set_t cpus;
  sched_getaffinity(0, sizeof(cpus), &cpus);
  int last = 0;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &cpus)) last = i;
  }
  CPU_ZERO(&cpus);
  CPU_SET(last, &cpus);
  sched_setaffinity(0, sizeof(cpus), &cpus);
}

void UnsetWithPrefix(const std::string& prefix) {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    if (variable.rfind(prefix, 0) == 0) {
      names.push_back(variable.substr(0, variable.find('=')));
    }
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

int Main(int argc, char** argv) {
  CLI::App app("Tuned kernels beside OpenBLAS and oneDNN, interleaved");
  std::string openblas, onednn;
  Kernels matmul, conv;
  app.add_option("--openblas", openblas, "Path of libopenblas")->required();
  app.add_option("--onednn", onednn, "Path of libdnnl")->required();
  app.add_option("--matmul", matmul.tuned, "Tuned library")->required();
  app.add_option("--matmul-default", matmul.fallback, "Default library")
      ->required();
  app.add_option("--conv", conv.tuned, "Tuned library")->required();
  app.add_option("--conv-default", conv.fallback, "Default library")
      ->required();
  CLI11_PARSE(app, argc, argv);
  // Left over from elsewhere, these choose a slower kernel than its own.
  UnsetWithPrefix("OPENBLAS_");
  setenv("OMP_NUM_THREADS", "1", 1);
  PinToOneCore();
  auto blas = OpenBlas::Open(openblas);
  auto dnn = OneDnn::Open(onednn);
  if (!blas.ok() || !dnn.ok()) {
    std::fprintf(stderr, "kernel_bench: %s %s\n",
                 std::string(blas.status().message()).c_str(),
                 std::string(dnn.status().message()).c_str());
    return 1;
  }
  std::printf("OpenBLAS kernel: %s (%s)\noneDNN %s\n%d rounds, medians\n",
              blas->kernel().c_str(), blas->config().c_str(),
              dnn->version().c_str(), kRounds);
  const bool matmul_holds = Matmul(*blas, matmul);
  const bool conv_holds = Convolution(*dnn, conv);
  return matmul_holds && conv_holds ? 0 : 1;
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) { return regatta::bench::Main(argc, argv); }

#include "device_agent/cuda_sim/gpu_list.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "compiler/ptxsim/gpu_architecture.h"

namespace regatta::cuda_sim {
namespace {

// Processors, clock, bandwidth and L2 of one product of each architecture, from
// its data sheet; the clock is the boost clock.
struct Product {
  int sm;
  int processors;
  uint64_t megahertz;
  uint64_t gigabytes_per_second;
  int l2_mib;
  bool integrated;
};
constexpr Product kProducts[] = {
    {75, 40, 1590, 320, 4, false},       // T4
    {80, 108, 1410, 1555, 40, false},    // A100 40 GB
    {86, 72, 1695, 600, 6, false},       // A10
    {87, 16, 1300, 204, 4, true},        // Jetson AGX Orin 64 GB
    {89, 58, 2040, 300, 48, false},      // L4
    {90, 132, 1980, 3350, 50, false},    // H100 SXM
    {100, 148, 1965, 8000, 126, false},  // B200
};
constexpr uint64_t kMega = 1'000'000, kGiga = 1'000'000'000;

std::string NameOf(const Product& product) {
  return absl::StrCat("sm_", product.sm);
}

}  // namespace

absl::StatusOr<std::vector<Gpu>> ChooseGpus(std::string_view list) {
  std::vector<Gpu> gpus;
  const std::vector<std::string> names = absl::StrSplit(std::string(list), ',');
  for (const std::string& part : names) {
    const std::string name(absl::StripAsciiWhitespace(part));
    const auto found =
        std::find_if(std::begin(kProducts), std::end(kProducts),
                     [&](const Product& p) { return NameOf(p) == name; });
    if (found == std::end(kProducts)) {
      return absl::InvalidArgumentError(
          absl::StrCat("no simulated GPU ", name, "; there are ",
                       absl::StrJoin(kProducts, ", ",
                                     [](std::string* out, const Product& p) {
                                       absl::StrAppend(out, NameOf(p));
                                     })));
    }
    Gpu& gpu = gpus.emplace_back();
    ASSIGN_OR_RETURN(gpu.model.architecture,
                     ptxsim::FindGpuArchitecture(found->sm));
    gpu.model.processors = found->processors;
    gpu.model.clock_hz = found->megahertz * kMega;
    gpu.model.memory_bytes_per_second = found->gigabytes_per_second * kGiga;
    gpu.name = absl::StrCat("Simulated ", name);
    gpu.l2_bytes = found->l2_mib << 20;
    gpu.integrated = found->integrated;
  }
  return gpus;
}

}  // namespace regatta::cuda_sim

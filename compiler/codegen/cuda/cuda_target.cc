#include "compiler/codegen/cuda/cuda_target.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace regatta::cuda {
namespace {

// What architectures have in common: the blocks that their mma takes (PTX
// manual, "mma"; the deepest of each type) and what else rules ask for.
struct Generation {
  std::vector<std::string> products;
  std::vector<std::string> features;
};
const Generation& Turing() {
  static const Generation& g = *new Generation{{"f16x16x8x8", "i8x8x8x16"}, {}};
  return g;
}
// And all later ones.
const Generation& Ampere() {
  static const Generation& g = *new Generation{
      {"bf16x16x8x16", "f16x16x8x16", "i8x16x8x32"}, {"+copy_async"}};
  return g;
}

// Fills in what is not said; what is, must be among what there is.
bool TakeAmong(const std::vector<std::string>& all,
               std::vector<std::string>& said) {
  if (said.empty()) said = all;
  return std::includes(all.begin(), all.end(), said.begin(), said.end());
}

// Memory that one block can have, in KiB: CUDA C++ Programming Guide, table of
// technical specifications per compute capability.
struct Architecture {
  const char* name;
  int64_t local_kib;
  const Generation& (*generation)() = Ampere;
};
constexpr Architecture kArchitectures[] = {
    {"sm_75", 64, Turing}, {"sm_80", 163},  {"sm_86", 99},   {"sm_87", 163},
    {"sm_88", 163},        {"sm_89", 99},   {"sm_90", 227},  {"sm_90a", 227},
    {"sm_100", 227},       {"sm_103", 227}, {"sm_110", 227}, {"sm_120", 99},
    {"sm_121", 99},
};
// The oldest version of CUDA whose NVRTC is known.
constexpr int kOldestDriver = 12;
constexpr int kVectorBits = 128;
constexpr int kMaxGroup = 1024;
constexpr int kSubgroup = 32;
constexpr int kMaxRegisters = 255;

}  // namespace

absl::StatusOr<Target> CompleteCudaTarget(Target target) {
  const auto bad = [](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("target: ", what));
  };
  if (!target.triple.empty() || target.vector_registers != 0 ||
      target.image_width != 0 || target.image_height != 0) {
    return bad(
        "a CUDA device is described by mcpu (its architecture, such as sm_80), "
        "features, max_group, local_bytes, max_registers, driver and "
        "products");
  }
  if (target.driver != 0 && target.driver < kOldestDriver) {
    return bad(absl::StrCat("driver=", target.driver,
                            ": code is made for drivers of CUDA ",
                            kOldestDriver, " and later; install a newer one"));
  }
  if (target.driver > kNewestDriver) {
    return bad(absl::StrCat("driver=", target.driver,
                            ": known are drivers of "
                            "CUDA ",
                            kOldestDriver, " to ", kNewestDriver,
                            "; leave it out for a later one, which loads what "
                            "is made for the newest known"));
  }
  if (target.driver == kNewestDriver) target.driver = 0;
  if (target.mcpu.empty()) target.mcpu = "sm_80";
  const auto found = std::find_if(
      std::begin(kArchitectures), std::end(kArchitectures),
      [&](const Architecture& a) { return target.mcpu == a.name; });
  if (found == std::end(kArchitectures)) {
    return bad(
        absl::StrCat("unknown architecture '", target.mcpu, "'; known are ",
                     absl::StrJoin(kArchitectures, ", ",
                                   [](std::string* out, const Architecture& a) {
                                     absl::StrAppend(out, a.name);
                                   })));
  }
  const auto limit = [&](const char* name, auto& field, int64_t most,
                         std::string& error) {
    if (field == 0) field = most;
    if (field > most) {
      error = absl::StrCat(name, "=", field, " is more than the ", most, " of ",
                           target.mcpu);
    }
  };
  std::string error;
  limit("vector_bits", target.vector_bits, kVectorBits, error);
  limit("max_group", target.max_group, kMaxGroup, error);
  limit("local_bytes", target.local_bytes, found->local_kib << 10, error);
  limit("subgroup", target.subgroup, kSubgroup, error);
  limit("max_registers", target.max_registers, kMaxRegisters, error);
  if (!error.empty()) return bad(error);
  const Generation& generation = found->generation();
  if (!TakeAmong(generation.features, target.features)) {
    return bad(absl::StrCat("features=", absl::StrJoin(target.features, ""),
                            ", but ", target.mcpu, " has '",
                            absl::StrJoin(generation.features, ""), "'"));
  }
  if (!TakeAmong(generation.products, target.products)) {
    return bad(absl::StrCat("products=", absl::StrJoin(target.products, "+"),
                            ", but ", target.mcpu, " has ",
                            absl::StrJoin(generation.products, "+")));
  }
  return target;
}

}  // namespace regatta::cuda

#include "compiler/ptxsim/counters.h"

#include "base/check.h"

namespace regatta::ptxsim {
namespace {

// In the order of the enumeration.
constexpr std::string_view kNames[kInstructionClasses] = {
    "fma",         "float32",      "float16",     "float64",     "integer",
    "integer64",   "move",         "convert",     "special",     "matrix",
    "shared_load", "shared_store", "load_matrix", "global_load", "global_store",
    "atomic",      "local",        "constant",    "async_copy",  "barrier",
    "branch",      "warp",         "other"};

}  // namespace

std::string_view InstructionClassName(InstructionClass kind) {
  return kNames[static_cast<int>(kind)];
}

uint64_t Counters::TotalWarpInstructions() const {
  uint64_t total = 0;
  for (uint64_t count : warp_instructions) total += count;
  return total;
}

void Counters::Scale(uint64_t numerator, uint64_t denominator) {
  CHECK(denominator > 0);
  const auto scale = [&](uint64_t& value) {
    value = static_cast<uint64_t>(static_cast<unsigned __int128>(value) *
                                  numerator / denominator);
  };
  for (uint64_t& count : warp_instructions) scale(count);
  for (uint64_t* value : {&issue_slots,
                          &thread_fmas,
                          &matrix_macs_f16,
                          &matrix_macs_int8,
                          &matrix_macs_tf32,
                          &shared_requests,
                          &shared_wavefronts,
                          &global_load_requests,
                          &global_load_sectors,
                          &global_store_requests,
                          &global_store_sectors,
                          &async_copy_bytes,
                          &global_fills,
                          &shared_fills,
                          &async_waits[0],
                          &async_waits[1],
                          &async_waits[2],
                          &async_waits[3],
                          &barriers,
                          &divergent_branches}) {
    scale(*value);
  }
}

}  // namespace regatta::ptxsim

// What code is generated for. No LLVM here: agents, trackers and logs handle
// targets as text or as this value.
//
// Text form, round-tripping: comma-separated, kind first, then fields in the
// order of the struct, those at their default left out:
//   cpu,triple=x86_64-linux-gnu,mcpu=znver4,vector_bits=512,vector_registers=32
//   opencl,features=+cl_khr_fp16,vector_bits=128,max_group=256,
//     local_bytes=32768                                          (on one line)
//   cuda,mcpu=sm_80
// Which fields mean something, and what they default to, is the code
// generator's matter: CompleteTarget checks them and fills in what a person may
// leave out (a CPU's vector fields from the processor's name, a GPU's limits
// from its architecture). Probed numbers are hints, never part of the text (see
// MachineHints).
#ifndef REGATTA_COMPILER_TARGET_TARGET_H_
#define REGATTA_COMPILER_TARGET_TARGET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/module/dtype.h"

namespace regatta {

struct Target {
  std::string kind = "cpu";           // name of the code generator family
  std::string triple;                 // "x86_64-linux-gnu"
  std::string mcpu;                   // processor: "znver4", "sm_80"
  std::vector<std::string> features;  // beyond mcpu's: "+avx512f", sorted
  int vector_bits = 0;                // widest vector worth using; 0: not said
  int vector_registers = 0;           // architectural vector registers
  // Limits of boards that run groups of work-items; 0: not said.
  int max_group = 0;        // work-items in one group
  int64_t local_bytes = 0;  // memory that a group shares
  int subgroup = 0;         // work-items that run in lock-step
  int max_registers = 0;    // 32-bit registers of one work-item
  int image_width = 0;      // of an image that code may use, in pixels of four
  int image_height = 0;     // elements; 0: no images
  // The interface of the driver that loads the code, where it is not the
  // newest known: 12 of CUDA 12.
  int driver = 0;
  // Blocks of sums of products that one instruction adds to accumulators, as
  // ParseProductForm reads them, sorted: {"i8x2x2x8", "i8x4"}.
  std::vector<std::string> products;

  std::string ToString() const;
  // Whether `features` says "+name".
  bool Has(std::string_view name) const;
  // Elements of `bytes` bytes in one vector, at least 1.
  int Lanes(int64_t bytes) const;
  friend bool operator==(const Target&, const Target&) = default;
};

// TYPExDEPTH: in every lane of a vector, a sum of DEPTH products of neighbours
// ("i8x4": sdot). TYPExROWSxCOLSxDEPTH: ROWS times COLS such sums, of every row
// of one operand with every row of the other ("i8x2x2x8": smmla). With "u"
// before the type, the elements of the first operand are unsigned ("ui8x4":
// vpdpbusd).
struct ProductForm {
  DType type = DType::kI8;
  bool unsigned_a = false;
  int rows = 1;
  int cols = 0;  // 0: the lanes of any vector
  int depth = 1;
  friend bool operator==(const ProductForm&, const ProductForm&) = default;
};
// Absent for other text.
std::optional<ProductForm> ParseProductForm(std::string_view text);

// InvalidArgument names the field that is wrong.
absl::StatusOr<Target> ParseTarget(std::string_view text);

// Whether a vector can be multiplied by one lane of another, so that what all
// lanes share is best loaded in vectors too.
bool MultipliesByLane(const Target& target);

// Probed facts about a machine, used for defaults and search order only. A
// field that was not probed keeps the conservative value given here.
struct MachineHints {
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 1 << 20;
  int64_t l3_bytes = 16 << 20;
};

// The class of a board that owns `cores` cores of this target's processor:
// "znver4-2c". Part of the key of every answer.
std::string CpuDeviceClass(const Target& target, int cores);

}  // namespace regatta

#endif  // REGATTA_COMPILER_TARGET_TARGET_H_

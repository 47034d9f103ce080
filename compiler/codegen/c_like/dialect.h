// What differs between the C-like languages that kernels are written in.
//
// To add a language: a subclass and a code generator that uses it.
#ifndef REGATTA_COMPILER_CODEGEN_C_LIKE_DIALECT_H_
#define REGATTA_COMPILER_CODEGEN_C_LIKE_DIALECT_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/module/dtype.h"

namespace regatta::c_like {

// How values are kept. In registers: f32 for f16 and bf16 (holding a value that
// the narrow type has), an int for i8. In memory: the bits of f16 and bf16 in
// unsigned 16-bit integers. Languages that compute in f16 (has_half) keep it as
// "half" in both.
//
// Generated code calls helper functions by names that begin with kHelperPrefix,
// which no name of C has in it. Once the text is whole it becomes the module's
// name and "_rg_", so that modules can stand in one source.
inline constexpr std::string_view kHelperPrefix = "RG@";

// Extents per dimension, dimension 0 first.
using Extents = std::array<int64_t, 3>;

// Memory that the threads of a group share, as one kernel needs it.
struct LocalArray {
  std::string name;
  DType dtype = DType::kF32;
  int64_t elements = 0;
};

enum class Space { kGlobal, kLocal };

// No language has vectors of more elements.
inline constexpr int kMaxRunElements = 16;

// A run of `count` elements at an address.
struct Run {
  Space space = Space::kGlobal;
  DType dtype = DType::kF32;
  std::string address;  // "b0_A + v1*4"
  int count = 1;
  bool aligned = false;  // to the size of the run
};

// A vector in a variable of its own: the statement that declares it, and its
// elements as they are in memory.
struct LoadedRun {
  std::string declaration;
  std::vector<std::string> elements;
};

// How a language reaches two-dimensional images of pixels of four elements, f32
// or f16. A kernel reads an image or writes it.
class ImageWords {
 public:
  virtual ~ImageWords() = default;
  virtual std::string Parameter(bool stored, const std::string& name) const = 0;
  // A pixel as its elements are kept in registers.
  virtual LoadedRun Load(const std::string& image, DType dtype,
                         const std::string& x, const std::string& y,
                         const std::string& name) const = 0;
  // REQUIRES: four elements.
  virtual std::string Store(const std::string& image, DType dtype,
                            const std::string& x, const std::string& y,
                            const std::vector<std::string>& elements) const = 0;
};

struct Helper {
  std::string_view name;  // without the prefix
  std::string text;
};

class Dialect {
 public:
  virtual ~Dialect() = default;

  // Types as they are kept in registers; a 64-bit integer; names of unsigned
  // and of small types.
  std::string RegisterType(DType dtype) const;
  std::string StorageType(DType dtype) const;
  virtual std::string_view long_type() const = 0;
  virtual std::string_view signed_char() const = 0;
  // Whether there is a type "half" to compute in.
  virtual bool has_half() const = 0;

  // What stands before all kernels.
  virtual std::string Pragmas(bool uses_f64) const = 0;
  // "void entry(" with what stands before it.
  virtual std::string KernelHead(const std::string& entry,
                                 const Extents& group) const = 0;
  // A pointer to elements in global memory that no other pointer reaches.
  virtual std::string Parameter(DType dtype, bool stored,
                                const std::string& name) const = 0;
  // Declarations at the top of a kernel, one a line; bytes to give at launch.
  virtual std::string LocalArrays(
      const std::vector<LocalArray>& arrays) const = 0;
  virtual int64_t LaunchBytes(const std::vector<LocalArray>& arrays) const = 0;
  virtual std::string GroupId(int dimension) const = 0;
  virtual std::string ThreadId(int dimension) const = 0;
  // Most groups in dimensions other than 0.
  virtual int64_t max_outer_groups() const = 0;
  // What stands before a loop that must stay one; may be empty.
  virtual std::string_view keep_loop() const = 0;
  // `global`: orders accesses of global memory too.
  virtual std::string Barrier(bool global) const = 0;

  // A statement; "" for an intrinsic (lower/intrinsics.h) that the devices of
  // this language have not. `operands`: addresses, each with the condition to
  // read there at all where it may be guarded; numbers; names of all registers,
  // and words of fragments, that an operand has.
  virtual std::string Intrinsic(
      std::string_view name,
      const std::vector<std::string>& operands) const = 0;

  // Of exp, log, tanh, erf, sqrt, floor, rint, fabs.
  virtual std::string Function(std::string_view name, DType dtype) const = 0;
  virtual std::string Infinity(DType dtype) const = 0;
  virtual std::string NotANumber(DType dtype) const = 0;

  // Most bytes that one access moves; whether it must be aligned.
  virtual int vector_bytes() const = 0;
  virtual bool must_align() const = 0;
  // REQUIRES: `run.count` is a power of two above 1, no more than
  // vector_bytes() and aligned if that must be.
  virtual LoadedRun Load(const Run& run, const std::string& name) const = 0;
  virtual std::string Store(const Run& run,
                            const std::vector<std::string>& elements) const = 0;

  // Null where devices of the language have none.
  virtual const ImageWords* images() const = 0;

  // Helper functions: those that are the same everywhere but for a few words,
  // then the dialect's own f16 conversions.
  std::vector<Helper> Helpers() const;

 protected:
  // Words of the common helpers: before a function; reading an unsigned int as
  // a float and back; a float, or double, to int: towards zero, saturating,
  // anything for NaN.
  struct Words {
    std::string_view function;
    std::string_view as_float;
    std::string_view as_uint;
    std::string_view float_to_int;
    std::string_view double_to_int;
  };
  virtual Words words() const = 0;
  // "f16" (as it is in memory to as it is in registers) and "to_f16" (float to
  // as it is in memory, to nearest even).
  virtual std::vector<Helper> HalfHelpers() const = 0;
};

int64_t LocalBytes(const LocalArray& array);

}  // namespace regatta::c_like

#endif  // REGATTA_COMPILER_CODEGEN_C_LIKE_DIALECT_H_

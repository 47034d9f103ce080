#include "compiler/codegen/cuda/cuda_dialect.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "compiler/codegen/cuda/cuda_intrinsics.h"

namespace regatta::cuda {
namespace {

using c_like::LocalArray;
using c_like::Run;

constexpr char kDimensions[] = "xyz";
constexpr char kComponents[] = "xyzw";
// What the widest access, and whatever else may be put there, wants.
constexpr int64_t kLocalAlignment = 128;

int64_t RoundUp(int64_t bytes) {
  return (bytes + kLocalAlignment - 1) / kLocalAlignment * kLocalAlignment;
}

// A vector type whose components are elements, or words that hold several.
struct VectorType {
  std::string word;  // "float", "uint", "unsigned short"
  int words = 1;
  int per_word = 1;  // elements
};

VectorType TypeOf(const Run& run) {
  switch (run.dtype) {
    case DType::kF64:
      return {"double", run.count, 1};
    case DType::kF32:
      return {"float", run.count, 1};
    case DType::kI32:
      return {"int", run.count, 1};
    default:
      break;
  }
  const int bytes = run.count * static_cast<int>(DTypeBytes(run.dtype));
  if (bytes == 2) return {"unsigned short", 1, run.count};
  return {bytes == 4 ? "unsigned int" : "uint", bytes / 4,
          run.count / (bytes / 4)};
}

std::string TypeName(const VectorType& type) {
  return type.words == 1 ? type.word : absl::StrCat(type.word, type.words);
}

}  // namespace

std::string CudaDialect::KernelHead(const std::string& entry,
                                    const c_like::Extents& group) const {
  return absl::StrCat("extern \"C\" __global__ void __launch_bounds__(",
                      group[0] * group[1] * group[2], ")\n", entry, "(\n    ");
}

std::string CudaDialect::Parameter(DType dtype, bool stored,
                                   const std::string& name) const {
  return absl::StrCat(stored ? "" : "const ", StorageType(dtype),
                      "* __restrict__ ", name);
}

std::string CudaDialect::LocalArrays(
    const std::vector<LocalArray>& arrays) const {
  if (arrays.empty()) return "";
  std::string text =
      absl::StrCat("  extern __shared__ __align__(", kLocalAlignment,
                   ") unsigned char RG@shared[];\n");
  int64_t offset = 0;
  for (const LocalArray& array : arrays) {
    const std::string type = StorageType(array.dtype);
    absl::StrAppend(&text, "  ", type, "* const ", array.name, " = (", type,
                    "*)(RG@shared + ", offset, ");\n");
    offset += RoundUp(c_like::LocalBytes(array));
  }
  return text;
}

int64_t CudaDialect::LaunchBytes(const std::vector<LocalArray>& arrays) const {
  int64_t bytes = 0;
  for (const LocalArray& array : arrays) {
    bytes += RoundUp(c_like::LocalBytes(array));
  }
  return bytes;
}

std::string CudaDialect::GroupId(int dimension) const {
  return absl::StrCat("(int)blockIdx.", std::string(1, kDimensions[dimension]));
}

std::string CudaDialect::ThreadId(int dimension) const {
  return absl::StrCat("(int)threadIdx.",
                      std::string(1, kDimensions[dimension]));
}

// Orders all memory that the block sees.
std::string CudaDialect::Barrier(bool) const { return "__syncthreads();"; }

std::string CudaDialect::Intrinsic(
    std::string_view name, const std::vector<std::string>& operands) const {
  return IntrinsicText(architecture_, name, operands);
}

std::string CudaDialect::Function(std::string_view name, DType dtype) const {
  return absl::StrCat(std::string(name), dtype == DType::kF64 ? "" : "f");
}

std::string CudaDialect::Infinity(DType dtype) const {
  return dtype == DType::kF64 ? "__longlong_as_double(0x7ff0000000000000LL)"
                              : "__uint_as_float(0x7f800000u)";
}

std::string CudaDialect::NotANumber(DType dtype) const {
  return dtype == DType::kF64 ? "__longlong_as_double(0x7ff8000000000000LL)"
                              : "__uint_as_float(0x7fc00000u)";
}

c_like::LoadedRun CudaDialect::Load(const Run& run,
                                    const std::string& name) const {
  CHECK(run.aligned) << run.address;
  const VectorType type = TypeOf(run);
  c_like::LoadedRun loaded;
  loaded.declaration =
      absl::StrCat("const ", TypeName(type), " ", name, " = *(const ",
                   TypeName(type), "*)(", run.address, ");");
  const std::string element = StorageType(run.dtype);
  const int bits = 8 * static_cast<int>(DTypeBytes(run.dtype));
  for (int i = 0; i < run.count; ++i) {
    std::string word = name;
    if (type.words > 1) {
      absl::StrAppend(&word, ".",
                      std::string(1, kComponents[i / type.per_word]));
    }
    const int shift = bits * (i % type.per_word);
    loaded.elements.push_back(
        type.per_word == 1
            ? word
            : absl::StrCat("(", element, ")(", word, " >> ", shift, ")"));
  }
  return loaded;
}

std::string CudaDialect::Store(const Run& run,
                               const std::vector<std::string>& elements) const {
  CHECK(run.aligned) << run.address;
  const VectorType type = TypeOf(run);
  const int bits = 8 * static_cast<int>(DTypeBytes(run.dtype));
  const std::string_view narrow =
      bits == 8 ? "unsigned char" : "unsigned short";
  std::vector<std::string> words;
  for (int w = 0; w < type.words; ++w) {
    std::vector<std::string> parts;
    for (int i = 0; i < type.per_word; ++i) {
      const std::string& text = elements[w * type.per_word + i];
      parts.push_back(
          type.per_word == 1
              ? text
              : absl::StrCat("(unsigned int)(", std::string(narrow), ")(", text,
                             i == 0 ? ")" : absl::StrCat(") << ", bits * i)));
    }
    words.push_back(absl::StrJoin(parts, " | "));
  }
  const std::string value =
      type.words == 1 ? absl::StrCat("(", type.word, ")(", words[0], ")")
                      : absl::StrCat("make_", TypeName(type), "(",
                                     absl::StrJoin(words, ", "), ")");
  return absl::StrCat("*(", TypeName(type), "*)(", run.address, ") = ", value,
                      ";");
}

c_like::Dialect::Words CudaDialect::words() const {
  return {.function = "static __device__ __forceinline__",
          .as_float = "__uint_as_float",
          .as_uint = "__float_as_uint",
          .float_to_int = "__float2int_rz",
          .double_to_int = "__double2int_rz"};
}

// The half type needs headers; its instructions do not.
std::vector<c_like::Helper> CudaDialect::HalfHelpers() const {
  std::vector<c_like::Helper> helpers = {
      {"f16",
       R"(static __device__ __forceinline__ float RG@f16(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
)"},
      {"to_f16",
       R"(static __device__ __forceinline__ unsigned short RG@to_f16(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
)"}};
  for (c_like::Helper& helper : IntrinsicHelpers()) {
    helpers.push_back(std::move(helper));
  }
  return helpers;
}

}  // namespace regatta::cuda

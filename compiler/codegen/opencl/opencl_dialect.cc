#include "compiler/codegen/opencl/opencl_dialect.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/lower/loop_ir.h"

namespace regatta::opencl {
namespace {

using c_like::LocalArray;
using c_like::Run;
using c_like::Space;

constexpr char kComponents[] = "0123456789abcdef";

std::string_view SpaceName(Space space) {
  return space == Space::kLocal ? "__local" : "__global";
}

// Element type of a vector: "ushort4" has no two words.
std::string ElementWord(const std::string& storage) {
  return storage == "unsigned short" ? "ushort" : storage;
}

}  // namespace

OpenClDialect::OpenClDialect(const Target& target)
    : vector_bytes_(std::max(4, target.vector_bits / 8)),
      fp16_(target.Has("cl_khr_fp16")),
      images_(fp16_) {}

std::string OpenClImages::Parameter(bool stored,
                                    const std::string& name) const {
  return absl::StrCat(stored ? "__write_only" : "__read_only", " image2d_t ",
                      name);
}

c_like::LoadedRun OpenClImages::Load(const std::string& image, DType dtype,
                                     const std::string& x, const std::string& y,
                                     const std::string& name) const {
  c_like::LoadedRun loaded;
  loaded.declaration =
      absl::StrCat("const ", Half(dtype) ? "half4 " : "float4 ", name, " = ",
                   Half(dtype) ? "read_imageh(" : "read_imagef(", image,
                   ", (int2)(", x, ", ", y, "));");
  for (int i = 0; i < loop::kPixelElements; ++i) {
    loaded.elements.push_back(
        absl::StrCat(name, ".s", std::string(1, kComponents[i])));
  }
  return loaded;
}

std::string OpenClImages::Store(
    const std::string& image, DType dtype, const std::string& x,
    const std::string& y, const std::vector<std::string>& elements) const {
  return absl::StrCat(Half(dtype) ? "write_imageh(" : "write_imagef(", image,
                      ", (int2)(", x, ", ", y, "), (",
                      Half(dtype) ? "half4" : "float4", ")(",
                      absl::StrJoin(elements, ", "), "));");
}

std::string OpenClDialect::Pragmas(bool uses_f64) const {
  std::string pragmas;
  if (fp16_) pragmas += "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n";
  if (uses_f64) pragmas += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
  return pragmas;
}

std::string OpenClDialect::KernelHead(const std::string& entry,
                                      const c_like::Extents& group) const {
  return absl::StrCat("__kernel __attribute__((reqd_work_group_size(",
                      absl::StrJoin(group, ", "), ")))\nvoid ", entry,
                      "(\n    ");
}

std::string OpenClDialect::Parameter(DType dtype, bool stored,
                                     const std::string& name) const {
  return absl::StrCat("__global ", stored ? "" : "const ", StorageType(dtype),
                      "* restrict ", name);
}

std::string OpenClDialect::LocalArrays(
    const std::vector<LocalArray>& arrays) const {
  std::string text;
  for (const LocalArray& array : arrays) {
    absl::StrAppend(&text, "  __local ", StorageType(array.dtype), " ",
                    array.name, "[", array.elements,
                    "] __attribute__((aligned(64)));\n");
  }
  return text;
}

std::string OpenClDialect::GroupId(int dimension) const {
  return absl::StrCat("(int)get_group_id(", dimension, ")");
}

std::string OpenClDialect::ThreadId(int dimension) const {
  return absl::StrCat("(int)get_local_id(", dimension, ")");
}

int64_t OpenClDialect::max_outer_groups() const {
  return std::numeric_limits<int32_t>::max();
}

std::string OpenClDialect::Barrier(bool global) const {
  return global ? "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
                : "barrier(CLK_LOCAL_MEM_FENCE);";
}

std::string OpenClDialect::Function(std::string_view name, DType) const {
  return std::string(name);
}

std::string OpenClDialect::Infinity(DType dtype) const {
  return dtype == DType::kF64 ? "((double)INFINITY)" : "INFINITY";
}

std::string OpenClDialect::NotANumber(DType dtype) const {
  return dtype == DType::kF64 ? "((double)NAN)" : "NAN";
}

c_like::LoadedRun OpenClDialect::Load(const Run& run,
                                      const std::string& name) const {
  const std::string type =
      absl::StrCat(ElementWord(StorageType(run.dtype)), run.count);
  c_like::LoadedRun loaded;
  // vload takes any address, so that compilers take it apart where a machine
  // does not.
  const std::string value =
      run.aligned ? absl::StrCat("*(", std::string(SpaceName(run.space)),
                                 " const ", type, "*)(", run.address, ")")
                  : absl::StrCat("vload", run.count, "(0, ", run.address, ")");
  loaded.declaration =
      absl::StrCat("const ", type, " ", name, " = ", value, ";");
  for (int i = 0; i < run.count; ++i) {
    loaded.elements.push_back(
        absl::StrCat(name, ".s", std::string(1, kComponents[i])));
  }
  return loaded;
}

std::string OpenClDialect::Store(
    const Run& run, const std::vector<std::string>& elements) const {
  const std::string type =
      absl::StrCat(ElementWord(StorageType(run.dtype)), run.count);
  const std::string value =
      absl::StrCat("(", type, ")(", absl::StrJoin(elements, ", "), ")");
  if (run.aligned) {
    return absl::StrCat("*(", std::string(SpaceName(run.space)), " ", type,
                        "*)(", run.address, ") = ", value, ";");
  }
  return absl::StrCat("vstore", run.count, "(", value, ", 0, ", run.address,
                      ");");
}

c_like::Dialect::Words OpenClDialect::words() const {
  return {.function = "",
          .as_float = "as_float",
          .as_uint = "as_uint",
          .float_to_int = "convert_int_sat_rtz",
          .double_to_int = "convert_int_sat_rtz"};
}

// Without the extension, half is a type for pointers only: conversions go
// through memory that compilers do not need.
std::vector<c_like::Helper> OpenClDialect::HalfHelpers() const {
  if (fp16_) {
    return {{"to_f16", R"(half RG@to_f16(float x) {
  return convert_half_rte(x);
}
)"}};
  }
  return {{"f16", R"(float RG@f16(unsigned short bits) {
  return vload_half(0, (const __private half*)&bits);
}
)"},
          {"to_f16", R"(unsigned short RG@to_f16(float x) {
  unsigned short bits;
  vstore_half_rte(x, 0, (__private half*)&bits);
  return bits;
}
)"}};
}

}  // namespace regatta::opencl

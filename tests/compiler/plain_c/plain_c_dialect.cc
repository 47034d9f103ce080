#include "tests/compiler/plain_c/plain_c_dialect.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace regatta::plain_c {

// What generated code calls besides the common helpers.
std::string PlainCDialect::Pragmas(bool) const {
  return R"(#include <limits.h>
#include <math.h>
#include <string.h>

static float as_float(unsigned int bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

static unsigned int as_uint(float x) {
  unsigned int bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}

static int to_int(double x) {
  return x != x                 ? 0
         : x >= (double)INT_MAX ? INT_MAX
         : x <= (double)INT_MIN ? INT_MIN
                                : (int)x;
}

)";
}

std::string PlainCDialect::KernelHead(const std::string& entry,
                                      const c_like::Extents&) const {
  return absl::StrCat("static void ", entry,
                      "(const int* group, const int* item,\n    ");
}

std::string PlainCDialect::Parameter(DType dtype, bool stored,
                                     const std::string& name) const {
  return absl::StrCat(stored ? "" : "const ", StorageType(dtype), "* restrict ",
                      name);
}

// The space has no schedule that shares memory.
std::string PlainCDialect::LocalArrays(
    const std::vector<c_like::LocalArray>& arrays) const {
  CHECK(arrays.empty()) << arrays[0].name;
  return "";
}

std::string PlainCDialect::Barrier(bool) const {
  CHECK(false) << "a target without barriers";
}

std::string PlainCDialect::GroupId(int dimension) const {
  return absl::StrCat("group[", dimension, "]");
}

std::string PlainCDialect::ThreadId(int dimension) const {
  return absl::StrCat("item[", dimension, "]");
}

std::string PlainCDialect::Function(std::string_view name, DType dtype) const {
  return absl::StrCat(std::string(name), dtype == DType::kF64 ? "" : "f");
}

c_like::LoadedRun PlainCDialect::Load(const c_like::Run& run,
                                      const std::string&) const {
  CHECK(false) << "a vector at " << run.address;
}

std::string PlainCDialect::Store(const c_like::Run& run,
                                 const std::vector<std::string>&) const {
  CHECK(false) << "a vector at " << run.address;
}

c_like::Dialect::Words PlainCDialect::words() const {
  return {.function = "static",
          .as_float = "as_float",
          .as_uint = "as_uint",
          .float_to_int = "to_int",
          .double_to_int = "to_int"};
}

std::vector<c_like::Helper> PlainCDialect::HalfHelpers() const {
  return {{"f16", R"(static float RG@f16(unsigned short bits) {
  _Float16 x;
  memcpy(&x, &bits, sizeof(x));
  return (float)x;
}
)"},
          {"to_f16", R"(static unsigned short RG@to_f16(float x) {
  const _Float16 narrow = (_Float16)x;
  unsigned short bits;
  memcpy(&bits, &narrow, sizeof(bits));
  return bits;
}
)"}};
}

}  // namespace regatta::plain_c

#include "compiler/codegen/c_like/dialect.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"

namespace regatta::c_like {
namespace {

// FN: before a function. A NaN operand gives NaN, whatever the order. Division
// is defined for every pair: x / 0 is 0, and the least number over -1 wraps to
// itself. NaN as an integer is 0, which languages do not promise: PTX makes the
// least number of a double (PTX ISA, cvt), and OpenCL says "should".
struct Template {
  const char* name;
  const char* text;
};
constexpr Template kTemplates[] = {
    {"max", R"(FN float RG@max(float a, float b) {
  return a > b || a != a ? a : b;
}
)"},
    {"min", R"(FN float RG@min(float a, float b) {
  return a < b || a != a ? a : b;
}
)"},
    {"max_f64", R"(FN double RG@max_f64(double a, double b) {
  return a > b || a != a ? a : b;
}
)"},
    {"min_f64", R"(FN double RG@min_f64(double a, double b) {
  return a < b || a != a ? a : b;
}
)"},
    {"div", R"(FN int RG@div(int a, int b) {
  return b == 0 ? 0 : b == -1 ? (int)(0u - (unsigned int)a) : a / b;
}
)"},
    {"to_i32", R"(FN int RG@to_i32(float x) {
  return x != x ? 0 : FLOAT_TO_INT(x);
}
)"},
    {"to_i8", R"(FN int RG@to_i8(float x) {
  int n = x != x ? 0 : FLOAT_TO_INT(x);
  return n < -128 ? -128 : n > 127 ? 127 : n;
}
)"},
    {"to_i32_f64", R"(FN int RG@to_i32_f64(double x) {
  return x != x ? 0 : DOUBLE_TO_INT(x);
}
)"},
    {"to_i8_f64", R"(FN int RG@to_i8_f64(double x) {
  int n = x != x ? 0 : DOUBLE_TO_INT(x);
  return n < -128 ? -128 : n > 127 ? 127 : n;
}
)"},
    // loop::SwizzledElement.
    {"swizzle", R"(FN int RG@swizzle(int e, int swizzle, int chunk) {
  return (int)((unsigned int)e ^
               (unsigned int)e / (unsigned int)swizzle % 8u * (unsigned int)chunk);
}
)"},
    {"bf16", R"(FN float RG@bf16(unsigned short bits) {
  return AS_FLOAT((unsigned int)bits << 16);
}
)"},
    // To nearest even; a NaN is made quiet, since rounding could carry it into
    // infinity.
    {"to_bf16", R"(FN unsigned short RG@to_bf16(float x) {
  unsigned int bits = AS_UINT(x);
  unsigned int rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return (unsigned short)((x != x ? bits | 0x400000u : rounded) >> 16);
}
)"},
};

}  // namespace

std::string Dialect::RegisterType(DType dtype) const {
  switch (dtype) {
    case DType::kF64:
      return "double";
    case DType::kF16:
      return has_half() ? "half" : "float";
    case DType::kF32:
    case DType::kBF16:
      return "float";
    case DType::kI32:
    case DType::kI8:
    case DType::kBool:
      return "int";
  }
  CHECK(false) << "dtype " << static_cast<int>(dtype);
  return "";
}

std::string Dialect::StorageType(DType dtype) const {
  switch (dtype) {
    case DType::kF16:
      return has_half() ? "half" : "unsigned short";
    case DType::kBF16:
      return "unsigned short";
    case DType::kI8:
      return std::string(signed_char());
    default:
      return RegisterType(dtype);
  }
}

std::vector<Helper> Dialect::Helpers() const {
  const Words w = words();
  std::vector<Helper> helpers;
  for (const Template& t : kTemplates) {
    helpers.push_back(
        {t.name,
         absl::StrReplaceAll(
             t.text, {{"FN ", absl::StrCat(std::string(w.function),
                                           w.function.empty() ? "" : " ")},
                      {"AS_FLOAT", std::string(w.as_float)},
                      {"AS_UINT", std::string(w.as_uint)},
                      {"FLOAT_TO_INT", std::string(w.float_to_int)},
                      {"DOUBLE_TO_INT", std::string(w.double_to_int)}})});
  }
  for (Helper& helper : HalfHelpers()) helpers.push_back(std::move(helper));
  return helpers;
}

int64_t LocalBytes(const LocalArray& array) {
  return array.elements * DTypeBytes(array.dtype);
}

}  // namespace regatta::c_like

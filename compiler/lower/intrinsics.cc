#include "compiler/lower/intrinsics.h"

#include "absl/strings/str_cat.h"

namespace regatta::loop {
namespace {

using Place = IntrinsicOperandRule::Place;
using Use = IntrinsicOperandRule::Use;

constexpr std::string_view kMultiply = "mma_";
// Forms of matrix units, as targets spell them.
constexpr std::string_view kForms[] = {"f16x16x8x16", "bf16x16x8x16",
                                       "f16x16x8x8", "i8x16x8x32", "i8x8x8x16"};
constexpr int64_t kMatrixRowBytes = 16;

Intrinsic Product(std::string_view text) {
  const ProductForm form = *ParseProductForm(text);
  const int64_t element = DTypeBytes(form.type);
  return {
      .name = MultiplyMatrices(form),
      .operands = {{.place = Place::kRegister,
                    .use = Use::kAccumulates,
                    .bytes = form.rows * form.cols * 4 / kWarp,
                    .dtype = IsFloat(form.type) ? DType::kF32 : DType::kI32},
                   {.place = Place::kFragment,
                    .bytes = form.rows * form.depth * element / kWarp,
                    .dtype = form.type},
                   {.place = Place::kFragment,
                    .bytes = form.cols * form.depth * element / kWarp,
                    .dtype = form.type}},
      .whole_warps = true};
}

std::vector<Intrinsic> All() {
  std::vector<Intrinsic> all = {
      {.name = std::string(kCommitAsync)},
      {.name = std::string(kWaitAsync), .operands = {{}}}};
  for (const int64_t bytes : {4, 8, 16}) {
    const IntrinsicOperandRule source = {
        .place = Place::kGlobal, .bytes = bytes, .may_be_guarded = true};
    const IntrinsicOperandRule target = {
        .place = Place::kLocal, .use = Use::kWrites, .bytes = bytes};
    all.push_back({.name = CopyAsync(bytes), .operands = {target, source}});
    all.push_back(
        {.name = LoadWords(bytes),
         .operands = {
             {.place = Place::kFragment, .use = Use::kWrites, .bytes = bytes},
             source}});
    all.push_back(
        {.name = StoreWords(bytes),
         .operands = {target, {.place = Place::kFragment, .bytes = bytes}}});
  }
  for (const int matrices : {1, 2, 4}) {
    for (const bool turned : {false, true}) {
      all.push_back(
          {.name = LoadMatrix(matrices, turned),
           .operands = {{.place = Place::kFragment,
                         .use = Use::kWrites,
                         .bytes = 4 * matrices},
                        {.place = Place::kLocal, .bytes = kMatrixRowBytes}},
           .whole_warps = true});
    }
  }
  for (const std::string_view form : kForms) all.push_back(Product(form));
  return all;
}

}  // namespace

std::string CopyAsync(int64_t bytes) {
  return absl::StrCat("copy_async_", bytes);
}

std::string LoadWords(int64_t bytes) {
  return absl::StrCat("load_words_", bytes);
}

std::string StoreWords(int64_t bytes) {
  return absl::StrCat("store_words_", bytes);
}

std::string LoadMatrix(int matrices, bool turned) {
  return absl::StrCat("load_matrix_x", matrices, turned ? "_turned" : "");
}

std::string MultiplyMatrices(const ProductForm& form) {
  return absl::StrCat(std::string(kMultiply), std::string(DTypeName(form.type)),
                      "x", form.rows, "x", form.cols, "x", form.depth);
}

std::optional<ProductForm> MatrixForm(std::string_view name) {
  if (name.substr(0, kMultiply.size()) != kMultiply) return std::nullopt;
  return ParseProductForm(name.substr(kMultiply.size()));
}

const Intrinsic* FindIntrinsic(std::string_view name) {
  static const std::vector<Intrinsic>& all = *new std::vector<Intrinsic>(All());
  for (const Intrinsic& intrinsic : all) {
    if (intrinsic.name == name) return &intrinsic;
  }
  return nullptr;
}

}  // namespace regatta::loop

#include "compiler/codegen/cuda/cuda_intrinsics.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/lower/intrinsics.h"

namespace regatta::cuda {
namespace {

// A function around an instruction, and the first architecture that has it.
struct Function {
  std::string name;
  int architecture;
  std::string text;
};

constexpr const char* kComponents[] = {".x", ".y", ".z", ".w"};
constexpr int kTuring = 75;
constexpr int kAmpere = 80;

std::string Head(std::string_view name, std::string_view parameters) {
  return absl::StrCat("static __device__ __forceinline__ void RG@",
                      std::string(name), "(", std::string(parameters), ") {\n");
}

// "unsigned int& a0, unsigned int& a1", and so on.
std::string Words(int count, std::string_view type, std::string_view name) {
  std::vector<std::string> words;
  for (int i = 0; i < count; ++i) {
    words.push_back(absl::StrCat(std::string(type), " ", std::string(name), i));
  }
  return absl::StrJoin(words, ", ");
}

// "\"=r\"(a0), \"=r\"(a1)".
std::string Constraints(int count, std::string_view constraint,
                        std::string_view name) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(absl::StrCat("\"", std::string(constraint), "\"(",
                               std::string(name), i, ")"));
  }
  return absl::StrJoin(all, ", ");
}

// "{%4, %5}".
std::string Operands(int first, int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back(absl::StrCat("%", first + i));
  return absl::StrCat("{", absl::StrJoin(all, ", "), "}");
}

// With 0 bytes to read the instruction writes zeros.
Function Copy(int bytes) {
  const std::string name = loop::CopyAsync(bytes);
  return {name, kAmpere,
          absl::StrCat(
              Head(name, "void* to, const void* from, bool read"),
              "  asm volatile(\"cp.async.c", bytes == 16 ? "g" : "a",
              ".shared.global [%0], [%1], ", bytes, ", %2;\"\n",
              "      : : \"r\"((unsigned int)__cvta_generic_to_shared(to)), "
              "\"l\"(from), \"r\"(read ? ",
              bytes, " : 0) : \"memory\");\n}\n")};
}

// Plain vector accesses: no instruction of its own.
Function Load(int bytes) {
  const std::string name = loop::LoadWords(bytes);
  const int words = bytes / 4;
  const std::string type =
      words == 1 ? "unsigned int" : absl::StrCat("uint", words);
  std::string text = Head(name, absl::StrCat(Words(words, "unsigned int&", "a"),
                                             ", const void* from, bool read"));
  for (int i = 0; i < words; ++i) absl::StrAppend(&text, "  a", i, " = 0u;\n");
  absl::StrAppend(&text, "  if (read) {\n    const ", type, " x = *(const ",
                  type, "*)from;\n");
  for (int i = 0; i < words; ++i) {
    absl::StrAppend(&text, "    a", i, " = x", words == 1 ? "" : kComponents[i],
                    ";\n");
  }
  return {name, kTuring, absl::StrCat(text, "  }\n}\n")};
}

Function Store(int bytes) {
  const std::string name = loop::StoreWords(bytes);
  const int words = bytes / 4;
  std::string value = "a0";
  std::string type = "unsigned int";
  if (words > 1) {
    type = absl::StrCat("uint", words);
    value = absl::StrCat("make_", type, "(", Words(words, "", "a"), ")");
  }
  return {
      name, kTuring,
      absl::StrCat(Head(name, absl::StrCat("void* to, ",
                                           Words(words, "unsigned int", "a"))),
                   "  *(", type, "*)to = ", value, ";\n}\n")};
}

Function LoadMatrix(int matrices, bool turned) {
  const std::string name = loop::LoadMatrix(matrices, turned);
  return {
      name, kTuring,
      absl::StrCat(
          Head(name, absl::StrCat(Words(matrices, "unsigned int&", "a"),
                                  ", const void* from")),
          "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x", matrices,
          turned ? ".trans" : "", ".shared.b16 ", Operands(0, matrices), ", [%",
          matrices, "];\"\n      : ", Constraints(matrices, "=r", "a"),
          "\n      : \"r\"((unsigned int)__cvta_generic_to_shared(from)) : "
          "\"memory\");\n}\n")};
}

Function Multiply(std::string_view form_text, int architecture) {
  const ProductForm form = *ParseProductForm(form_text);
  const std::string name = loop::MultiplyMatrices(form);
  const bool real = IsFloat(form.type);
  const int element = static_cast<int>(DTypeBytes(form.type));
  const int c = form.rows * form.cols / loop::kWarp;
  const int a = form.rows * form.depth * element / 4 / loop::kWarp;
  const int b = form.cols * form.depth * element / 4 / loop::kWarp;
  const std::string narrow =
      real ? std::string(DTypeName(form.type)) : std::string("s8");
  const std::string wide = real ? "f32" : "s32";
  return {name, architecture,
          absl::StrCat(
              Head(name, absl::StrCat(Words(c, real ? "float&" : "int&", "c"),
                                      ", ", Words(a, "unsigned int", "a"), ", ",
                                      Words(b, "unsigned int", "b"))),
              "  asm volatile(\"mma.sync.aligned.m", form.rows, "n", form.cols,
              "k", form.depth, ".row.col.", wide, ".", narrow, ".", narrow, ".",
              wide, "\"\n      \" ", Operands(0, c), ", ", Operands(c, a), ", ",
              Operands(c + a, b), ", ", Operands(0, c),
              ";\"\n      : ", Constraints(c, real ? "+f" : "+r", "c"),
              "\n      : ", Constraints(a, "r", "a"), ", ",
              Constraints(b, "r", "b"), ");\n}\n")};
}

const std::vector<Function>& Functions() {
  static const std::vector<Function>& all = *new std::vector<Function>{
      {std::string(loop::kCommitAsync), kAmpere,
       absl::StrCat(Head(loop::kCommitAsync, ""),
                    "  asm volatile(\"cp.async.commit_group;\" : : : "
                    "\"memory\");\n}\n")},
      Copy(16),
      Copy(8),
      Copy(4),
      Load(16),
      Load(8),
      Load(4),
      Store(16),
      Store(8),
      Store(4),
      LoadMatrix(4, false),
      LoadMatrix(4, true),
      LoadMatrix(2, false),
      LoadMatrix(2, true),
      LoadMatrix(1, false),
      LoadMatrix(1, true),
      Multiply("f16x16x8x16", kAmpere),
      Multiply("bf16x16x8x16", kAmpere),
      Multiply("i8x16x8x32", kAmpere),
      Multiply("f16x16x8x8", kTuring),
      Multiply("i8x8x8x16", kTuring)};
  return all;
}

}  // namespace

std::string IntrinsicText(int architecture, std::string_view name,
                          const std::vector<std::string>& operands) {
  if (name == loop::kWaitAsync && architecture >= kAmpere) {
    // A constant of the instruction: no function can take it.
    return absl::StrCat("asm volatile(\"cp.async.wait_group ", operands[0],
                        ";\" : : : \"memory\");");
  }
  for (const Function& function : Functions()) {
    if (function.name != name || architecture < function.architecture) continue;
    return absl::StrCat("RG@", function.name, "(",
                        absl::StrJoin(operands, ", "), ");");
  }
  return "";
}

std::vector<c_like::Helper> IntrinsicHelpers() {
  std::vector<c_like::Helper> helpers;
  for (const Function& function : Functions()) {
    helpers.push_back({function.name, function.text});
  }
  return helpers;
}

}  // namespace regatta::cuda

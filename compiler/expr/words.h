// The words of the expression language: one table for parser and printer.
#ifndef REGATTA_COMPILER_EXPR_WORDS_H_
#define REGATTA_COMPILER_EXPR_WORDS_H_

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "compiler/expr/expr.h"
#include "compiler/module/dtype.h"

namespace regatta {

inline constexpr std::array<std::pair<std::string_view, UnaryOp>, 10>
    kFunctionWords = {{{"abs", UnaryOp::kAbs},
                       {"exp", UnaryOp::kExp},
                       {"log", UnaryOp::kLog},
                       {"sqrt", UnaryOp::kSqrt},
                       {"rsqrt", UnaryOp::kRsqrt},
                       {"tanh", UnaryOp::kTanh},
                       {"sigmoid", UnaryOp::kSigmoid},
                       {"erf", UnaryOp::kErf},
                       {"floor", UnaryOp::kFloor},
                       {"round", UnaryOp::kRound}}};

inline constexpr std::array<std::pair<std::string_view, Reduction>, 4>
    kReductionWords = {{{"sum", Reduction::kSum},
                        {"prod", Reduction::kProd},
                        {"max", Reduction::kMax},
                        {"min", Reduction::kMin}}};

template <typename T, size_t n>
std::optional<T> FindWord(
    const std::array<std::pair<std::string_view, T>, n>& words,
    std::string_view name) {
  for (const auto& [word, value] : words) {
    if (word == name) return value;
  }
  return std::nullopt;
}

template <typename T, size_t n>
std::string_view WordOf(
    const std::array<std::pair<std::string_view, T>, n>& words, T value) {
  for (const auto& [word, candidate] : words) {
    if (candidate == value) return word;
  }
  return "";
}

// Words that name no index and no tensor.
inline bool IsReserved(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kOthers = {
      "select", "pad", "where", "dtype", "inf", "nan", "infinity", "f64"};
  return FindWord(kFunctionWords, name) || FindWord(kReductionWords, name) ||
         ParseTensorDType(name) ||
         std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
}

}  // namespace regatta

#endif  // REGATTA_COMPILER_EXPR_WORDS_H_

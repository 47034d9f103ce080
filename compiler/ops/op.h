// Operators: named, parameterised expressions. An operator is a few lines that
// print an expression; everything else (spaces, code, checks) follows from the
// expression's structure.
#ifndef REGATTA_COMPILER_OPS_OP_H_
#define REGATTA_COMPILER_OPS_OP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/expr/expr.h"

namespace regatta {

// One parameter of an operator.
struct OpParameter {
  enum class Kind {
    kInteger,   // 64
    kWord,      // one of `words`
    kReal,      // 1e-5; finite
    kIntegers,  // integers joined by x: 32x64x16
    kWords,     // some of `words` joined by +: relu+exp
  };
  std::string name;
  std::string help;  // one clause, for `regatta ops`
  // Absent: must be given. An integer's default may be the name of a parameter
  // before it, and is then that one's value.
  std::optional<std::string> default_value;
  Kind kind = Kind::kInteger;
  int64_t min = 1, max = int64_t{1} << 31;  // of an integer or each of a list
  std::vector<std::string> words;           // of kWord and kWords
};

// `value` in its one spelling. InvalidArgument when `parameter` does not take
// it.
absl::StatusOr<std::string> CheckArgument(const OpParameter& parameter,
                                          const std::string& value);

// Argument values of one call, complete and checked against the parameters.
class OpArguments {
 public:
  explicit OpArguments(std::map<std::string, std::string> values)
      : values_(std::move(values)) {}
  // REQUIRES: the parameter exists and has that kind.
  int64_t Int(std::string_view name) const;
  const std::string& Word(std::string_view name) const;  // or a real number
  std::vector<int64_t> Ints(std::string_view name) const;
  std::vector<std::string> Words(std::string_view name) const;
  // Whether the operator has that parameter at all.
  bool Has(std::string_view name) const {
    return values_.count(std::string(name)) > 0;
  }

 private:
  std::map<std::string, std::string> values_;
};

struct Op {
  std::string name;
  std::string help;
  std::vector<OpParameter> parameters;
  // The expression text; InvalidArgument for combinations that make no sense
  // (a kernel larger than its padded input). REQUIRES: `arguments` complete.
  absl::StatusOr<std::string> (*expression)(const OpArguments& arguments);
  // Calls that tests try, odd shapes included.
  std::vector<std::string> samples;
};

// THE list of operators, in op_list.cc.
absl::Span<const Op> Ops();

// A workload from either kind of text: an operator call "matmul(m=4,n=4,k=4)"
// or an expression. The one entry point for text that people or files give.
// InvalidArgument says what is wrong and where; unknown operators list the
// known ones.
absl::StatusOr<Workload> ParseWorkload(std::string_view text);

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_OP_H_

// Reads the body of a PTX function: declarations, labels, instructions.
#ifndef REGATTA_COMPILER_PTXSIM_FUNCTION_PARSER_H_
#define REGATTA_COMPILER_PTXSIM_FUNCTION_PARSER_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ptxsim/syntax.h"
#include "compiler/ptxsim/token_cursor.h"

namespace regatta::ptxsim {

class FunctionParser {
 public:
  // `function` has its parameters and results; `module` the variables declared
  // before it. All must outlive the parser.
  FunctionParser(TokenCursor& cursor, const RawModule& module,
                 RawFunction& function);

  // From after the opening brace to after the closing one.
  absl::Status ParseBody();

 private:
  // What a name means in a scope.
  struct Meaning {
    bool is_register = false;
    int id = 0;
    // Of a range: NAME0, NAME1, ... have this and the following ids.
    int count = 0;
  };

  absl::Status ParseItem();
  absl::Status ParseRegisters();
  absl::Status ParseLabelOrStatement();
  absl::Status ParseBranchTargets(const std::string& label);
  absl::Status ParseStatement();
  absl::StatusOr<Operand> ParseOperand();
  absl::StatusOr<Operand> ParseSimple();
  absl::StatusOr<Operand> ParseName();
  absl::StatusOr<Operand> ParseAddress();
  absl::StatusOr<Operand> ParseList(std::string_view end);
  absl::StatusOr<int64_t> ParseOffset();
  absl::StatusOr<int> PredicateRegister(const std::string& name) const;
  absl::Status DeclareRegisters(const std::string& name, Type type, int range);
  // What a name means in the innermost scope that knows it.
  std::optional<Meaning> Find(const std::string& name) const;

  TokenCursor& cursor_;
  const RawModule& module_;
  RawFunction& function_;
  using Scope = std::map<std::string, Meaning, std::less<>>;
  std::vector<Scope> scopes_;
  std::vector<int> scope_ids_;
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_FUNCTION_PARSER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/expr/lexer.h"
#include "compiler/expr/parser.h"
#include "compiler/expr/token_reader.h"
#include "compiler/ops/op.h"

namespace regatta {
namespace {

constexpr const char* kWhatToWrite =
    "write an operator call such as matmul(m=512,n=512,k=512), or an "
    "expression "
    "such as 'C[i,j] = sum(k) A[i,k] * B[k,j] where i=512, j=512, k=512'";

struct Argument {
  std::string value;
  Token at;
};

const Op* FindOp(std::string_view name) {
  for (const Op& op : Ops()) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

std::string Names(const std::vector<OpParameter>& parameters) {
  return absl::StrJoin(parameters, ", ",
                       [](std::string* out, const OpParameter& parameter) {
                         absl::StrAppend(out, parameter.name);
                       });
}

const OpParameter* FindParameter(const Op& op, std::string_view name) {
  for (const OpParameter& parameter : op.parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

// One value: everything without a blank up to the next ',' or ')'.
absl::StatusOr<std::string> TakeValue(TokenReader& in) {
  const auto at_end = [&] {
    return in.At(",") || in.At(")") || in.At("(") || in.At("=") ||
           in.Peek().kind == Token::Kind::kEnd;
  };
  if (at_end()) return in.Expected("a value after '='");
  std::string value;
  size_t end = in.Peek().offset;
  while (!at_end() && in.Peek().offset == end) {
    const Token token = in.Take();
    absl::StrAppend(&value, std::string(token.text));
    end += token.text.size();
  }
  return value;
}

absl::StatusOr<std::map<std::string, std::string>> ParseArguments(
    const Op& op, TokenReader& in) {
  std::map<std::string, std::string> values;
  RETURN_IF_ERROR(in.Expect("(", "after an operator's name"));
  while (!in.At(")")) {
    const Token name = in.Peek();
    if (!in.AtName() || !in.At("=", 1)) {
      return in.Expected(absl::StrCat("a parameter as name=value; ", op.name,
                                      " takes ", Names(op.parameters)));
    }
    in.Take();
    in.Take();
    const OpParameter* parameter = FindParameter(op, name.text);
    if (parameter == nullptr) {
      return in.Error(name, absl::StrCat(op.name, " has no parameter '",
                                         std::string(name.text), "'; it takes ",
                                         Names(op.parameters)));
    }
    const Token at = in.Peek();
    ASSIGN_OR_RETURN(const std::string written, TakeValue(in));
    const absl::StatusOr<std::string> value =
        CheckArgument(*parameter, written);
    if (!value.ok()) {
      return in.Error(at, std::string(value.status().message()));
    }
    if (!values.emplace(parameter->name, *value).second) {
      return in.Error(name, absl::StrCat("parameter '", parameter->name,
                                         "' is given twice"));
    }
    if (!in.Accept(",")) break;
  }
  RETURN_IF_ERROR(in.Expect(")", "or ',' after a parameter"));
  if (in.Peek().kind != Token::Kind::kEnd) {
    return in.Expected("nothing more: the operator call is complete");
  }
  return values;
}

// The expression of a call, defaults filled in.
absl::StatusOr<std::string> ExpressionOf(
    const Op& op, std::map<std::string, std::string> values) {
  for (const OpParameter& parameter : op.parameters) {
    if (parameter.default_value.has_value()) {
      auto same = values.end();
      if (parameter.kind == OpParameter::Kind::kInteger) {
        same = values.find(*parameter.default_value);
      }
      values.emplace(parameter.name, same == values.end()
                                         ? *parameter.default_value
                                         : same->second);
    } else if (values.count(parameter.name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "parameter '", parameter.name, "' (", parameter.help,
          ") is missing; ", op.name, " takes ", Names(op.parameters)));
    }
  }
  return op.expression(OpArguments(std::move(values)));
}

// The call in its one spelling: what may be left out without changing the
// expression is left out.
absl::StatusOr<std::string> Normalised(
    const Op& op, std::map<std::string, std::string> values,
    const std::string& expression) {
  std::vector<std::string> parts;
  for (const OpParameter& parameter : op.parameters) {
    const auto it = values.find(parameter.name);
    if (it == values.end()) continue;
    if (parameter.default_value.has_value()) {
      std::map<std::string, std::string> without = values;
      without.erase(parameter.name);
      const absl::StatusOr<std::string> same = ExpressionOf(op, without);
      if (same.ok() && *same == expression) {
        values = std::move(without);
        continue;
      }
    }
    parts.push_back(absl::StrCat(parameter.name, "=", it->second));
  }
  return absl::StrCat(op.name, "(", absl::StrJoin(parts, ","), ")");
}

absl::StatusOr<Workload> ParseCall(const Op& op, TokenReader& in) {
  ASSIGN_OR_RETURN(const auto values, ParseArguments(op, in));
  ASSIGN_OR_RETURN(const std::string expression, ExpressionOf(op, values));
  ASSIGN_OR_RETURN(Workload workload, ParseUnnamedExpression(expression));
  workload.family = op.name;
  ASSIGN_OR_RETURN(workload.text, Normalised(op, values, expression));
  return workload;
}

}  // namespace

absl::StatusOr<Workload> ParseWorkload(std::string_view text) {
  absl::StatusOr<std::vector<Token>> tokens = Lex(text);
  if (!tokens.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "workload: ", tokens.status().message(), "; ", kWhatToWrite));
  }
  TokenReader in(text, *std::move(tokens));
  if (in.AtName() && in.At("[", 1)) {
    absl::StatusOr<Workload> workload = ParseExpression(text);
    if (!workload.ok()) return Annotate(workload.status(), "workload");
    return workload;
  }
  if (!in.AtName()) {
    return Annotate(in.Error(in.Peek(), absl::StrCat("no workload starts so; ",
                                                     kWhatToWrite)),
                    "workload");
  }
  const Token name = in.Take();
  const Op* op = FindOp(name.text);
  if (op == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "workload: unknown operator '", Excerpt(name.text, 40), "'; known are ",
        absl::StrJoin(Ops(), ", ", [](std::string* out, const Op& known) {
          absl::StrAppend(out, known.name);
        })));
  }
  absl::StatusOr<Workload> workload = ParseCall(*op, in);
  if (!workload.ok()) {
    return Annotate(workload.status(), absl::StrCat("workload: ", op->name));
  }
  return workload;
}

}  // namespace regatta

#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "client/cli/commands.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "compiler/expr/printer.h"
#include "compiler/ops/op.h"

namespace regatta::cli {
namespace {

std::string KindName(OpParameter::Kind kind) {
  switch (kind) {
    case OpParameter::Kind::kInteger:
      return "integer";
    case OpParameter::Kind::kWord:
      return "word";
    case OpParameter::Kind::kReal:
      return "real";
    case OpParameter::Kind::kIntegers:
      return "integers";
    case OpParameter::Kind::kWords:
      return "words";
  }
  CHECK(false) << "parameter kind " << static_cast<int>(kind);
}

// The expression of an operator's first sample.
std::string ExpressionOf(const Op& op) {
  const absl::StatusOr<Workload> workload = ParseWorkload(op.samples.front());
  CHECK(workload.ok()) << op.samples.front();
  return PrintExpression(*workload);
}

Json OpDocument(const Op& op) {
  Json parameters = Json::array();
  for (const OpParameter& p : op.parameters) {
    parameters.push_back(
        {{"name", p.name},
         {"help", p.help},
         {"kind", KindName(p.kind)},
         {"default", p.default_value ? Json(*p.default_value) : Json(nullptr)},
         {"words", p.words}});
  }
  return {{"name", op.name},
          {"help", op.help},
          {"parameters", parameters},
          {"example", op.samples.front()},
          {"expression", ExpressionOf(op)}};
}

void PrintOp(const Op& op) {
  std::vector<std::string> names;
  for (const OpParameter& p : op.parameters) {
    names.push_back(
        p.default_value ? absl::StrCat(p.name, "=", *p.default_value) : p.name);
  }
  std::cout << op.name << "(" << absl::StrJoin(names, ", ") << ")\n  "
            << op.help << "\n";
  for (const OpParameter& p : op.parameters) {
    std::cout << "    " << p.name << ": " << p.help;
    if (!p.words.empty()) {
      std::cout << " (" << absl::StrJoin(p.words, ", ") << ")";
    }
    std::cout << "\n";
  }
  std::cout << "  " << op.samples.front() << " is\n    " << ExpressionOf(op)
            << "\n";
}

int Run(bool json) {
  Json documents = Json::array();
  for (const Op& op : Ops()) {
    if (json) {
      documents.push_back(OpDocument(op));
    } else {
      PrintOp(op);
    }
  }
  if (json) {
    PrintJson({{"ops", documents}});
  } else {
    std::cout << "Any tensor expression works too, for example\n  'C[i,j] = "
                 "sum(k) A[i,k] * B[k,j] where i=64, j=64, k=64, "
                 "dtype=f32'\n";
  }
  return kExitDone;
}

}  // namespace

AddedCommand AddOps(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "ops", "The operators that can be named, with their parameters");
  AddJsonFlag(command, json.get());
  return {command, [json] { return Run(*json); }};
}

}  // namespace regatta::cli

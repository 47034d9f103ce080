#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "compiler/ops/op.h"

namespace regatta::cli {
namespace {

Json OpDocument(const Op& op) {
  Json parameters = Json::array();
  for (const OpParameter& p : op.parameters) {
    parameters.push_back(
        {{"name", p.name},
         {"help", p.help},
         {"default", p.default_value ? Json(*p.default_value) : Json(nullptr)},
         {"words", p.words}});
  }
  return {{"name", op.name}, {"help", op.help}, {"parameters", parameters}};
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

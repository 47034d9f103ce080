#include "compiler/ptxsim/parser.h"

#include <charconv>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "compiler/ptxsim/function_parser.h"
#include "compiler/ptxsim/lexer.h"
#include "compiler/ptxsim/token_cursor.h"

namespace regatta::ptxsim {

std::string Statement::FullName() const {
  std::string name = opcode;
  for (const std::string& modifier : modifiers) name += modifier;
  return name;
}

const RawFunction* RawModule::FindFunction(const std::string& name) const {
  const RawFunction* found = nullptr;
  for (const RawFunction& function : functions) {
    if (function.name == name && (found == nullptr || function.has_body)) {
      found = &function;
    }
  }
  return found;
}

namespace {

class ModuleParser {
 public:
  explicit ModuleParser(const std::vector<Token>& tokens) : cursor_(tokens) {}

  absl::StatusOr<RawModule> Run() {
    while (!cursor_.AtEnd()) {
      if (!cursor_.TakeIf(";")) RETURN_IF_ERROR(ParseItem());
    }
    if (module_.target_sm == 0) {
      return absl::InvalidArgumentError("PTX text without a .target");
    }
    return std::move(module_);
  }

 private:
  absl::Status ParseItem();
  absl::Status ParseVersion();
  absl::Status ParseTarget();
  absl::Status ParseFunction(bool is_entry);
  absl::Status ParseParameters(RawFunction& function, std::vector<int>& list);
  absl::Status ParseFunctionDirectives(RawFunction& function);
  absl::Status ParseThreads(uint32_t (&threads)[3]);
  absl::Status SkipSection();

  void SkipLine(int line) {
    while (!cursor_.AtEnd() && cursor_.Peek().line == line) cursor_.Take();
  }

  TokenCursor cursor_;
  RawModule module_;
};

absl::Status ModuleParser::ParseItem() {
  bool external = false;
  while (cursor_.Peek().Is(".visible") || cursor_.Peek().Is(".extern") ||
         cursor_.Peek().Is(".weak") || cursor_.Peek().Is(".common")) {
    external |= cursor_.Take().Is(".extern");
  }
  const Token token = cursor_.Take();
  if (token.text == ".version") return ParseVersion();
  if (token.text == ".target") return ParseTarget();
  if (token.text == ".entry") return ParseFunction(true);
  if (token.text == ".func") return ParseFunction(false);
  if (token.text == ".section") return SkipSection();
  if (token.text == ".file" || token.text == ".loc") {
    SkipLine(token.line);
    return absl::OkStatus();
  }
  if (token.text == ".address_size") {
    if (cursor_.Peek().integer != 64) {
      return cursor_.Error("addresses of 64 bits only");
    }
    cursor_.Take();
    return absl::OkStatus();
  }
  Space space;
  if (token.text == ".global") {
    space = Space::kGlobal;
  } else if (token.text == ".const") {
    space = Space::kConst;
  } else if (token.text == ".shared") {
    space = Space::kShared;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("PTX line ", token.line, ": '", token.Shown(),
                     "' is not supported outside of functions"));
  }
  do {
    ASSIGN_OR_RETURN(Variable variable, cursor_.ParseVariable(space, external));
    if (external && variable.bytes == 0 && space != Space::kShared) {
      return cursor_.Error(
          absl::StrCat(variable.name, " is defined in another module"));
    }
    module_.variables.push_back(std::move(variable));
  } while (cursor_.TakeIf(","));
  return cursor_.Expect(";");
}

absl::Status ModuleParser::ParseVersion() {
  const std::string_view text = cursor_.Take().text;
  const size_t dot = text.find('.');
  const char* end = text.data() + text.size();
  if (dot == std::string_view::npos ||
      std::from_chars(text.data(), text.data() + dot, module_.version_major)
              .ec != std::errc() ||
      std::from_chars(text.data() + dot + 1, end, module_.version_minor).ec !=
          std::errc()) {
    return cursor_.Error("a .version such as 8.0 expected");
  }
  return absl::OkStatus();
}

absl::Status ModuleParser::ParseTarget() {
  do {
    ASSIGN_OR_RETURN(const std::string word, cursor_.Identifier("a target"));
    for (std::string_view prefix : {"sm_", "compute_"}) {
      if (word.compare(0, prefix.size(), prefix) != 0) continue;
      int sm = 0;
      std::from_chars(word.data() + prefix.size(), word.data() + word.size(),
                      sm);
      if (sm > 0) module_.target_sm = sm;
    }
  } while (cursor_.TakeIf(","));
  if (module_.target_sm == 0) return cursor_.Error("a .target sm_NN expected");
  return absl::OkStatus();
}

absl::Status ModuleParser::ParseParameters(RawFunction& function,
                                           std::vector<int>& list) {
  RETURN_IF_ERROR(cursor_.Expect("("));
  if (cursor_.TakeIf(")")) return absl::OkStatus();
  do {
    RETURN_IF_ERROR(cursor_.Expect(".param"));
    ASSIGN_OR_RETURN(Variable variable,
                     cursor_.ParseVariable(Space::kParam, false));
    list.push_back(static_cast<int>(function.variables.size()));
    function.variables.push_back(std::move(variable));
  } while (cursor_.TakeIf(","));
  return cursor_.Expect(")");
}

absl::Status ModuleParser::ParseThreads(uint32_t (&threads)[3]) {
  threads[1] = threads[2] = 1;
  for (int i = 0; i < 3; ++i) {
    ASSIGN_OR_RETURN(const uint64_t count,
                     cursor_.Count("number of threads", 1 << 20));
    threads[i] = static_cast<uint32_t>(count);
    if (!cursor_.TakeIf(",")) break;
  }
  return absl::OkStatus();
}

absl::Status ModuleParser::ParseFunctionDirectives(RawFunction& function) {
  while (cursor_.Peek().kind == Token::Kind::kDirective) {
    const std::string_view word = cursor_.Take().text;
    if (word == ".maxntid") {
      RETURN_IF_ERROR(ParseThreads(function.max_threads));
    } else if (word == ".reqntid") {
      RETURN_IF_ERROR(ParseThreads(function.required_threads));
    } else if (word == ".minnctapersm" || word == ".maxnctapersm" ||
               word == ".maxnreg") {
      RETURN_IF_ERROR(cursor_.Count("number", 1 << 20).status());
    } else if (word == ".pragma") {
      cursor_.Take();
      RETURN_IF_ERROR(cursor_.Expect(";"));
    } else if (word != ".noreturn") {
      return cursor_.Error(absl::StrCat("directive ", ToAbsl(word),
                                        " of function ", function.name,
                                        " is not supported"));
    }
  }
  return absl::OkStatus();
}

absl::Status ModuleParser::ParseFunction(bool is_entry) {
  RawFunction function = {.is_entry = is_entry, .line = cursor_.Peek().line};
  if (!is_entry && cursor_.Peek().Is("(")) {
    RETURN_IF_ERROR(ParseParameters(function, function.results));
  }
  ASSIGN_OR_RETURN(function.name, cursor_.Identifier("a function's name"));
  if (cursor_.Peek().Is("(")) {
    RETURN_IF_ERROR(ParseParameters(function, function.parameters));
  }
  RETURN_IF_ERROR(ParseFunctionDirectives(function));
  if (cursor_.TakeIf(";")) {
    module_.functions.push_back(std::move(function));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(cursor_.Expect("{"));
  function.has_body = true;
  RETURN_IF_ERROR(FunctionParser(cursor_, module_, function).ParseBody());
  module_.functions.push_back(std::move(function));
  return absl::OkStatus();
}

// Debug information: .section NAME { ... }
absl::Status ModuleParser::SkipSection() {
  while (!cursor_.AtEnd() && !cursor_.TakeIf("{")) cursor_.Take();
  int depth = 1;
  while (!cursor_.AtEnd() && depth > 0) {
    const Token& token = cursor_.Take();
    if (token.Is("{")) ++depth;
    if (token.Is("}")) --depth;
  }
  return depth == 0 ? absl::OkStatus() : cursor_.Error("section without end");
}

}  // namespace

absl::StatusOr<RawModule> ParsePtx(std::string_view text) {
  ASSIGN_OR_RETURN(const std::vector<Token> tokens, Tokenize(text));
  return ModuleParser(tokens).Run();
}

}  // namespace regatta::ptxsim

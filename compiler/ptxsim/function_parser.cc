#include "compiler/ptxsim/function_parser.h"

#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta::ptxsim {
namespace {

constexpr size_t kMaxRegisters = 1 << 18;
constexpr size_t kMaxScopeDepth = 64;

}  // namespace

FunctionParser::FunctionParser(TokenCursor& cursor, const RawModule& module,
                               RawFunction& function)
    : cursor_(cursor), module_(module), function_(function) {
  scopes_.emplace_back();
  scope_ids_.push_back(0);
  function_.scope_parents.push_back(-1);
  for (size_t i = 0; i < function_.variables.size(); ++i) {
    scopes_[0][function_.variables[i].name] = {false, static_cast<int>(i)};
  }
}

absl::Status FunctionParser::ParseBody() {
  while (!scopes_.empty()) {
    if (cursor_.AtEnd()) {
      return cursor_.Error(
          absl::StrCat("function ", function_.name, " has no end"));
    }
    if (cursor_.TakeIf("{")) {
      if (scopes_.size() > kMaxScopeDepth) {
        return cursor_.Error("too many nested braces");
      }
      scope_ids_.push_back(static_cast<int>(function_.scope_parents.size()));
      function_.scope_parents.push_back(scope_ids_[scope_ids_.size() - 2]);
      scopes_.emplace_back();
    } else if (cursor_.TakeIf("}")) {
      scopes_.pop_back();
      scope_ids_.pop_back();
    } else if (!cursor_.TakeIf(";")) {
      RETURN_IF_ERROR(ParseItem());
    }
  }
  return absl::OkStatus();
}

absl::Status FunctionParser::ParseItem() {
  const Token token = cursor_.Peek();
  if (token.kind != Token::Kind::kDirective) return ParseLabelOrStatement();
  cursor_.Take();
  if (token.text == ".reg") return ParseRegisters();
  if (token.text == ".loc") {
    // Ends with its line, not with a semicolon.
    while (!cursor_.AtEnd() && cursor_.Peek().line == token.line) {
      cursor_.Take();
    }
    return absl::OkStatus();
  }
  if (token.text == ".pragma") {
    while (!cursor_.AtEnd() && !cursor_.TakeIf(";")) cursor_.Take();
    return absl::OkStatus();
  }
  Space space;
  if (token.text == ".shared") {
    space = Space::kShared;
  } else if (token.text == ".local") {
    space = Space::kLocal;
  } else if (token.text == ".param") {
    space = Space::kParam;
  } else if (token.text == ".const") {
    space = Space::kConst;
  } else if (token.text == ".global") {
    space = Space::kGlobal;
  } else {
    return cursor_.Error(
        absl::StrCat("directive ", token.Shown(), " is not supported here"));
  }
  do {
    ASSIGN_OR_RETURN(Variable variable, cursor_.ParseVariable(space, false));
    scopes_.back()[variable.name] = {
        false, static_cast<int>(function_.variables.size())};
    function_.variables.push_back(std::move(variable));
  } while (cursor_.TakeIf(","));
  return cursor_.Expect(";");
}

absl::Status FunctionParser::ParseRegisters() {
  const auto type = ParseType(cursor_.Peek().text);
  if (!type.has_value()) {
    return cursor_.Error(absl::StrCat(
        "registers of type '", cursor_.Peek().Shown(), "' are not supported"));
  }
  cursor_.Take();
  do {
    ASSIGN_OR_RETURN(const std::string name,
                     cursor_.Identifier("a register's name"));
    int range = 0;
    if (cursor_.TakeIf("<")) {
      ASSIGN_OR_RETURN(const uint64_t count,
                       cursor_.Count("number of registers", kMaxRegisters));
      RETURN_IF_ERROR(cursor_.Expect(">"));
      range = static_cast<int>(count);
      if (range == 0) continue;
    }
    RETURN_IF_ERROR(DeclareRegisters(name, *type, range));
  } while (cursor_.TakeIf(","));
  return cursor_.Expect(";");
}

absl::Status FunctionParser::DeclareRegisters(const std::string& name,
                                              Type type, int range) {
  std::vector<Type>& registers = function_.registers;
  const size_t count = range == 0 ? 1 : range;
  if (registers.size() + count > kMaxRegisters) {
    return cursor_.Error("too many registers");
  }
  // A range is remembered under a name that no operand can have.
  const std::string key = range == 0 ? name : name + "<";
  scopes_.back()[key] = {true, static_cast<int>(registers.size()), range};
  registers.insert(registers.end(), count, type);
  return absl::OkStatus();
}

absl::Status FunctionParser::ParseLabelOrStatement() {
  if (cursor_.Peek().kind == Token::Kind::kIdentifier &&
      cursor_.Peek(1).Is(":")) {
    const std::string label(cursor_.Take().text);
    cursor_.Take();
    if (cursor_.Peek().Is(".branchtargets")) return ParseBranchTargets(label);
    function_.labels.push_back(
        {label, scope_ids_.back(), function_.statements.size()});
    return absl::OkStatus();
  }
  return ParseStatement();
}

absl::Status FunctionParser::ParseBranchTargets(const std::string& label) {
  cursor_.Take();
  std::vector<std::string>& targets =
      function_.branch_targets[{scope_ids_.back(), label}];
  do {
    ASSIGN_OR_RETURN(std::string target, cursor_.Identifier("a label"));
    targets.push_back(std::move(target));
  } while (cursor_.TakeIf(","));
  return cursor_.Expect(";");
}

absl::Status FunctionParser::ParseStatement() {
  Statement statement = {.line = cursor_.Peek().line,
                         .scope = scope_ids_.back()};
  if (cursor_.TakeIf("@")) {
    statement.guard_negated = cursor_.TakeIf("!");
    ASSIGN_OR_RETURN(const std::string name, cursor_.Identifier("a predicate"));
    ASSIGN_OR_RETURN(statement.guard, PredicateRegister(name));
  }
  ASSIGN_OR_RETURN(statement.opcode, cursor_.Identifier("an instruction"));
  while (cursor_.Peek().kind == Token::Kind::kDirective) {
    statement.modifiers.emplace_back(cursor_.Take().text);
  }
  if (!cursor_.Peek().Is(";")) {
    do {
      ASSIGN_OR_RETURN(Operand operand, ParseOperand());
      statement.operands.push_back(std::move(operand));
    } while (cursor_.TakeIf(","));
  }
  RETURN_IF_ERROR(cursor_.Expect(";"));
  function_.statements.push_back(std::move(statement));
  return absl::OkStatus();
}

absl::StatusOr<int> FunctionParser::PredicateRegister(
    const std::string& name) const {
  const std::optional<Meaning> meaning = Find(name);
  if (!meaning.has_value() || !meaning->is_register ||
      function_.registers[meaning->id] != Type::kPred) {
    return cursor_.Error(absl::StrCat(name, " is no predicate"));
  }
  return meaning->id;
}

std::optional<FunctionParser::Meaning> FunctionParser::Find(
    const std::string& name) const {
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  for (size_t i = scopes_.size(); i-- > 0;) {
    const Scope& scope = scopes_[i];
    const auto found = scope.find(name);
    if (found != scope.end()) return found->second;
    // %r12 may be of a range %r<20>, or of %r1<3>.
    for (size_t split = digits; split < name.size(); ++split) {
      if (name[split] == '0' && split + 1 < name.size()) continue;
      const auto range = scope.find(name.substr(0, split) + "<");
      if (range == scope.end()) continue;
      int number = 0;
      const auto parsed = std::from_chars(name.data() + split,
                                          name.data() + name.size(), number);
      if (parsed.ec == std::errc() && number < range->second.count) {
        return Meaning{true, range->second.id + number};
      }
    }
  }
  return std::nullopt;
}

absl::StatusOr<Operand> FunctionParser::ParseOperand() {
  if (cursor_.TakeIf("[")) return ParseAddress();
  if (cursor_.TakeIf("{")) return ParseList("}");
  if (cursor_.TakeIf("(")) return ParseList(")");
  ASSIGN_OR_RETURN(Operand first, ParseSimple());
  if (!cursor_.TakeIf("|")) return first;
  ASSIGN_OR_RETURN(Operand second, ParseSimple());
  Operand pair = {.kind = Operand::Kind::kPair};
  pair.elements = {std::move(first), std::move(second)};
  return pair;
}

absl::StatusOr<Operand> FunctionParser::ParseList(std::string_view end) {
  Operand list = {.kind = Operand::Kind::kList};
  if (cursor_.TakeIf(end)) return list;
  do {
    ASSIGN_OR_RETURN(Operand element, ParseSimple());
    list.elements.push_back(std::move(element));
  } while (cursor_.TakeIf(","));
  RETURN_IF_ERROR(cursor_.Expect(end));
  return list;
}

absl::StatusOr<Operand> FunctionParser::ParseAddress() {
  Operand address = {.kind = Operand::Kind::kAddress};
  ASSIGN_OR_RETURN(Operand base, ParseSimple());
  address.offset = std::exchange(base.offset, 0);
  address.elements.push_back(std::move(base));
  ASSIGN_OR_RETURN(const int64_t offset, ParseOffset());
  address.offset += offset;
  RETURN_IF_ERROR(cursor_.Expect("]"));
  return address;
}

// "+8", "-8", "+-8", or nothing. Offsets are 32 bits wide.
absl::StatusOr<int64_t> FunctionParser::ParseOffset() {
  bool negative = false;
  if (cursor_.TakeIf("+")) {
    negative = cursor_.TakeIf("-");
  } else if (cursor_.TakeIf("-")) {
    negative = true;
  } else {
    return 0;
  }
  ASSIGN_OR_RETURN(const uint64_t value, cursor_.Count("offset", 1u << 31));
  return negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
}

absl::StatusOr<Operand> FunctionParser::ParseSimple() {
  Operand operand;
  operand.negated = cursor_.TakeIf("!");
  const bool minus = !operand.negated && cursor_.TakeIf("-");
  const Token token = cursor_.Peek();
  switch (token.kind) {
    case Token::Kind::kInteger:
      operand.kind = Operand::Kind::kInteger;
      operand.integer = minus ? -token.integer : token.integer;
      break;
    case Token::Kind::kFloat32:
      operand.kind = Operand::Kind::kFloat32;
      operand.integer = token.integer ^ (minus ? 0x80000000u : 0);
      break;
    case Token::Kind::kFloat:
      operand.kind = Operand::Kind::kFloat;
      operand.real = minus ? -token.real : token.real;
      break;
    case Token::Kind::kIdentifier: {
      if (minus) return cursor_.Error("a minus before a name");
      ASSIGN_OR_RETURN(Operand named, ParseName());
      named.negated = operand.negated;
      return named;
    }
    default:
      return cursor_.Error(
          absl::StrCat("operand expected, found '", token.Shown(), "'"));
  }
  cursor_.Take();
  return operand;
}

absl::StatusOr<Operand> FunctionParser::ParseName() {
  Operand operand = {.kind = Operand::Kind::kName};
  operand.name = std::string(cursor_.Take().text);
  if (operand.name == "_") {
    operand.kind = Operand::Kind::kSink;
    return operand;
  }
  if (const std::optional<Meaning> meaning = Find(operand.name)) {
    operand.kind = meaning->is_register ? Operand::Kind::kRegister
                                        : Operand::Kind::kVariable;
    operand.id = meaning->id;
  } else if (operand.name[0] == '%') {
    operand.kind = Operand::Kind::kSpecial;
    if (cursor_.Peek().kind == Token::Kind::kDirective) {
      operand.name += cursor_.Take().text;
    }
    return operand;
  } else {
    for (size_t i = 0; i < module_.variables.size(); ++i) {
      if (module_.variables[i].name != operand.name) continue;
      operand.kind = Operand::Kind::kVariable;
      operand.id = ~static_cast<int>(i);
    }
  }
  if (operand.kind == Operand::Kind::kVariable &&
      (cursor_.Peek().Is("+") || cursor_.Peek().Is("-"))) {
    ASSIGN_OR_RETURN(operand.offset, ParseOffset());
  }
  return operand;
}

}  // namespace regatta::ptxsim

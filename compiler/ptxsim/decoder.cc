#include "compiler/ptxsim/decoder.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "compiler/ptxsim/frame_layout.h"
#include "compiler/ptxsim/instruction_builder.h"
#include "compiler/ptxsim/latency_points.h"
#include "compiler/ptxsim/opcode_list.h"
#include "compiler/ptxsim/race_clocks.h"
#include "compiler/ptxsim/shared_layout.h"

namespace regatta::ptxsim {
namespace {

constexpr int kMaxCallDepth = 16;
constexpr uint64_t kMaxLocalBytes = 512 << 10;   // of a thread, as in hardware
constexpr uint64_t kMaxSharedBytes = 256 << 10;  // more than any GPU has
constexpr uint32_t kMaxRegisterBytes = 16 << 20;

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

absl::Status ErrorAt(const Statement& statement, std::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat("PTX line ", statement.line,
                                                 ": ", statement.FullName(),
                                                 ": ", ToAbsl(message)));
}

using Place = NameResolver::Place;

// One expansion of a function's body.
struct Expansion : NameResolver {
  Expansion(const RawFunction& f, const RawModule& m, const ModuleLayout& l,
            const SharedLayout& s, FrameLayout& r)
      : function(f),
        module(m),
        layout(l),
        shared(s),
        frame(r),
        slots(f.registers.size(), kNoSlot),
        places(f.variables.size()) {}

  Slot RegisterSlot(int id) override {
    if (slots[id] == kNoSlot) {
      slots[id] = frame.NewRegister(function.registers[id]);
    }
    return slots[id];
  }
  Type RegisterType(int id) const override { return function.registers[id]; }
  absl::StatusOr<Place> VariablePlace(int id) const override {
    const Variable& variable =
        id < 0 ? module.variables[~id] : function.variables[id];
    if (variable.space == Space::kShared) {
      return Place{Space::kShared, shared.Address(function, id)};
    }
    if (id < 0) return Place{variable.space, layout.addresses[~id]};
    if (variable.space != Space::kLocal && variable.space != Space::kParam) {
      return absl::InvalidArgumentError(
          absl::StrCat(variable.name,
                       ": a variable of a function in that "
                       "space is not supported"));
    }
    return places[id];
  }

  const RawFunction& function;
  const RawModule& module;
  const ModuleLayout& layout;
  const SharedLayout& shared;
  FrameLayout& frame;
  std::vector<Slot> slots;
  std::vector<Place> places;  // of local and param variables

  // Where labels are and who branches to them.
  struct Jump {
    uint32_t instruction;
    std::string label;
    int scope;
    int line;
  };
  std::vector<Jump> jumps;
  std::vector<uint32_t> returns;
  std::map<std::pair<int, std::string>, uint32_t> labels;
};

class EntryDecoder {
 public:
  EntryDecoder(const RawModule& module, const ModuleLayout& layout,
               const RawFunction& entry)
      : module_(module),
        layout_(layout),
        entry_(entry),
        shared_(SharedLayout::Of(module, entry)) {}

  absl::StatusOr<Program> Run() {
    program_.name = entry_.name;
    std::copy(std::begin(entry_.max_threads), std::end(entry_.max_threads),
              program_.max_threads);
    std::copy(std::begin(entry_.required_threads),
              std::end(entry_.required_threads), program_.required_threads);
    if (shared_.static_bytes() > kMaxSharedBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("entry ", entry_.name, " has ", shared_.static_bytes(),
                       " bytes of static shared memory"));
    }
    program_.static_shared_bytes =
        static_cast<uint32_t>(shared_.static_bytes());
    program_.dynamic_shared = shared_.dynamic();
    Expansion body(entry_, module_, layout_, shared_, frame_);
    LayOutParameters(body);
    RETURN_IF_ERROR(Expand(body, 0));
    Emit({.flow = Flow::kExit,
          .kind = InstructionClass::kBranch,
          .line = entry_.line},
         "ret");
    MarkLatencyPoints(program_);
    frame_.Finish(program_);
    program_.local_bytes =
        static_cast<uint32_t>(AlignUp(program_.local_bytes, 16));
    return std::move(program_);
  }

 private:
  void LayOutParameters(Expansion& body);
  absl::Status AllocateLocals(Expansion& body);
  absl::Status Expand(Expansion& body, int depth);
  absl::Status DecodeStatement(Expansion& body, const Statement& statement,
                               int depth);
  absl::Status DecodePlain(Expansion& body, const Statement& statement);
  absl::Status DecodeBranch(Expansion& body, const Statement& statement);
  absl::Status DecodeTableBranch(Expansion& body, const Statement& statement);
  absl::Status DecodeReturn(Expansion& body, const Statement& statement,
                            bool leaves_kernel);
  absl::Status DecodeCall(Expansion& body, const Statement& statement,
                          int depth);
  absl::Status Inline(Expansion& body, const Statement& statement, int depth,
                      const RawFunction& callee,
                      const std::vector<Operand>& results,
                      const std::vector<Operand>& arguments);
  absl::Status Resolve(Expansion& body);
  absl::StatusOr<uint32_t> LabelAddress(const Expansion& body,
                                        const std::string& name, int scope,
                                        int line) const;
  void NoteGranule(const Instruction& instruction);
  void Emit(Instruction instruction, std::string name) {
    program_.code.push_back(instruction);
    program_.names.push_back(std::move(name));
  }
  uint32_t Here() const { return static_cast<uint32_t>(program_.code.size()); }

  const RawModule& module_;
  const ModuleLayout& layout_;
  const RawFunction& entry_;
  const SharedLayout shared_;
  FrameLayout frame_;
  Program program_;
};

void EntryDecoder::LayOutParameters(Expansion& body) {
  uint64_t end = 0;
  for (int id : entry_.parameters) {
    const Variable& variable = entry_.variables[id];
    end = AlignUp(end, variable.alignment);
    body.places[id] = {Space::kParam, end};
    program_.parameters.push_back({end, variable.bytes, variable.alignment});
    end += variable.bytes;
  }
  program_.parameter_bytes = end;
}

absl::Status EntryDecoder::AllocateLocals(Expansion& body) {
  const std::vector<Variable>& variables = body.function.variables;
  const size_t first =
      body.function.parameters.size() + body.function.results.size();
  uint64_t end = program_.local_bytes;
  for (size_t i = first; i < variables.size(); ++i) {
    const Variable& variable = variables[i];
    const bool argument = variable.space == Space::kParam;
    if (!argument && variable.space != Space::kLocal) continue;
    end = AlignUp(end, std::max<uint32_t>(variable.alignment, 4));
    body.places[i] = {Space::kLocal, argument ? end | kParamIsLocal : end};
    end += variable.bytes;
    if (end > kMaxLocalBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "PTX line ", variable.line, ": function ", body.function.name,
          " needs more than ", kMaxLocalBytes, " bytes of local memory"));
    }
  }
  program_.local_bytes = static_cast<uint32_t>(end);
  return absl::OkStatus();
}

absl::Status EntryDecoder::Expand(Expansion& body, int depth) {
  RETURN_IF_ERROR(AllocateLocals(body));
  const RawFunction& function = body.function;
  size_t next_label = 0;
  for (size_t i = 0; i <= function.statements.size(); ++i) {
    for (; next_label < function.labels.size() &&
           function.labels[next_label].statement == i;
         ++next_label) {
      const Label& label = function.labels[next_label];
      body.labels[{label.scope, label.name}] = Here();
    }
    if (i == function.statements.size()) break;
    RETURN_IF_ERROR(DecodeStatement(body, function.statements[i], depth));
    if (Here() + 2 >= kMaxProgramCounter) {
      return ErrorAt(function.statements[i], "the program is too long");
    }
    if (frame_.register_bytes() > kMaxRegisterBytes) {
      return ErrorAt(function.statements[i], "too many registers");
    }
  }
  return Resolve(body);
}

absl::Status EntryDecoder::DecodeStatement(Expansion& body,
                                           const Statement& statement,
                                           int depth) {
  if (statement.opcode == "bra") return DecodeBranch(body, statement);
  if (statement.opcode == "brx") return DecodeTableBranch(body, statement);
  if (statement.opcode == "call") return DecodeCall(body, statement, depth);
  if (statement.opcode == "exit") return DecodeReturn(body, statement, true);
  if (statement.opcode == "ret") {
    return DecodeReturn(body, statement, depth == 0);
  }
  return DecodePlain(body, statement);
}

absl::Status EntryDecoder::DecodePlain(Expansion& body,
                                       const Statement& statement) {
  const DecodeFunction decode = FindOpcode(statement.opcode);
  if (decode == nullptr) {
    return ErrorAt(statement, absl::StrCat("opcode '", statement.opcode,
                                           "' is not supported"));
  }
  InstructionBuilder builder(statement, body, frame_);
  decode(builder);
  RETURN_IF_ERROR(builder.Finish());
  Instruction& instruction = builder.out();
  // Moves and parameters mostly become operands of other instructions.
  if (instruction.kind == InstructionClass::kMove ||
      instruction.kind == InstructionClass::kConstant) {
    instruction.issue_slots = 0;
  }
  NoteGranule(instruction);
  Emit(instruction, statement.FullName());
  return absl::OkStatus();
}

void EntryDecoder::NoteGranule(const Instruction& in) {
  const uint32_t bytes =
      std::clamp<uint32_t>(TypeBytes(in.type) * in.vector, 1, 4);
  switch (in.kind) {
    case InstructionClass::kSharedLoad:
    case InstructionClass::kSharedStore:
    case InstructionClass::kGlobalLoad:
    case InstructionClass::kGlobalStore:
    case InstructionClass::kAtomic:
      break;
    default:
      return;
  }
  if (in.space != Space::kGlobal) {
    program_.shared_granule = std::min(program_.shared_granule, bytes);
  }
  if (in.space != Space::kShared) {
    program_.global_granule = std::min(program_.global_granule, bytes);
  }
}

absl::Status EntryDecoder::DecodeBranch(Expansion& body,
                                        const Statement& statement) {
  InstructionBuilder builder(statement, body, frame_);
  builder.RequireOperands(1, 1);
  builder.Take(".uni");
  if (builder.raw(0).kind != Operand::Kind::kName)
    builder.Fail("needs a label");
  RETURN_IF_ERROR(builder.Finish());
  builder.out().flow = Flow::kBranch;
  builder.out().kind = InstructionClass::kBranch;
  body.jumps.push_back(
      {Here(), statement.operands[0].name, statement.scope, statement.line});
  Emit(builder.out(), statement.FullName());
  return absl::OkStatus();
}

absl::Status EntryDecoder::DecodeTableBranch(Expansion& body,
                                             const Statement& statement) {
  InstructionBuilder builder(statement, body, frame_);
  builder.RequireOperands(2, 2);
  if (!builder.Take(".idx")) builder.Fail("is supported as .idx");
  builder.Take(".uni");
  builder.Source(0, 0, Type::kU32);
  RETURN_IF_ERROR(builder.Finish());
  const std::string& name = statement.operands[1].name;
  for (int scope = statement.scope; scope >= 0;
       scope = body.function.scope_parents[scope]) {
    const auto found = body.function.branch_targets.find({scope, name});
    if (found == body.function.branch_targets.end()) continue;
    builder.out().flow = Flow::kBranchTable;
    builder.out().kind = InstructionClass::kBranch;
    builder.out().target = static_cast<uint32_t>(program_.tables.size());
    program_.tables.emplace_back(found->second.size());
    for (const std::string& label : found->second) {
      body.jumps.push_back({Here(), label, scope, statement.line});
    }
    Emit(builder.out(), statement.FullName());
    return absl::OkStatus();
  }
  return ErrorAt(statement, absl::StrCat("no .branchtargets ", name));
}

absl::Status EntryDecoder::DecodeReturn(Expansion& body,
                                        const Statement& statement,
                                        bool leaves_kernel) {
  InstructionBuilder builder(statement, body, frame_);
  builder.RequireOperands(0, 0);
  builder.Take(".uni");
  RETURN_IF_ERROR(builder.Finish());
  builder.out().kind = InstructionClass::kBranch;
  builder.out().flow = leaves_kernel ? Flow::kExit : Flow::kBranch;
  if (!leaves_kernel) body.returns.push_back(Here());
  Emit(builder.out(), statement.FullName());
  return absl::OkStatus();
}

absl::Status EntryDecoder::DecodeCall(Expansion& body,
                                      const Statement& statement, int depth) {
  std::vector<Operand> results, arguments;
  size_t next = 0;
  const std::vector<Operand>& operands = statement.operands;
  const auto is_list = [&](size_t i) {
    return i < operands.size() && operands[i].kind == Operand::Kind::kList;
  };
  if (is_list(next)) results = operands[next++].elements;
  if (next >= operands.size() || operands[next].kind != Operand::Kind::kName) {
    return ErrorAt(statement, "only calls of named functions are supported");
  }
  const std::string& name = operands[next++].name;
  if (is_list(next)) arguments = operands[next++].elements;
  if (next != operands.size()) {
    return ErrorAt(statement, "has operands that are not supported");
  }
  const RawFunction* callee = module_.FindFunction(name);
  if (callee == nullptr || callee->is_entry || !callee->has_body) {
    if (name != "__assertfail") {
      return ErrorAt(statement,
                     absl::StrCat("function ", name, " has no body here"));
    }
    InstructionBuilder builder(statement, body, frame_);
    builder.out().flow = Flow::kTrap;
    Emit(builder.out(), "call __assertfail");
    return absl::OkStatus();
  }
  if (depth >= kMaxCallDepth) {
    return ErrorAt(statement, "calls nest too deeply, or recursion");
  }
  return Inline(body, statement, depth, *callee, results, arguments);
}

absl::Status EntryDecoder::Inline(Expansion& body, const Statement& statement,
                                  int depth, const RawFunction& callee,
                                  const std::vector<Operand>& results,
                                  const std::vector<Operand>& arguments) {
  Expansion inner(callee, module_, layout_, shared_, frame_);
  const auto bind = [&](const std::vector<int>& ids,
                        const std::vector<Operand>& given) -> absl::Status {
    if (ids.size() != given.size()) {
      return ErrorAt(statement, "another number of arguments than declared");
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      if (given[i].kind != Operand::Kind::kVariable || given[i].id < 0 ||
          body.function.variables[given[i].id].space != Space::kParam ||
          body.function.variables[given[i].id].bytes <
              callee.variables[ids[i]].bytes) {
        return ErrorAt(statement,
                       "arguments are .param variables as large as "
                       "the function's");
      }
      inner.places[ids[i]] = body.places[given[i].id];
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(bind(callee.results, results));
  RETURN_IF_ERROR(bind(callee.parameters, arguments));
  // The call itself: a branch over the body for lanes whose guard is off.
  InstructionBuilder builder(statement, body, frame_);
  builder.Take(".uni");
  RETURN_IF_ERROR(builder.Finish());
  const uint32_t call = Here();
  const bool guarded = builder.out().guard != kNoSlot;
  builder.out().flow = guarded ? Flow::kBranch : Flow::kNext;
  builder.out().guard_negated = !builder.out().guard_negated;
  builder.out().kind = InstructionClass::kBranch;
  builder.out().run = [](const Instruction&, WarpContext&) {};
  Emit(builder.out(), statement.FullName());
  RETURN_IF_ERROR(Expand(inner, depth + 1));
  for (uint32_t at : inner.returns) program_.code[at].target = Here();
  program_.code[call].target = Here();
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> EntryDecoder::LabelAddress(const Expansion& body,
                                                    const std::string& name,
                                                    int scope, int line) const {
  for (; scope >= 0; scope = body.function.scope_parents[scope]) {
    const auto found = body.labels.find({scope, name});
    if (found != body.labels.end()) return found->second;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("PTX line ", line, ": no label ", name));
}

absl::Status EntryDecoder::Resolve(Expansion& body) {
  std::map<uint32_t, size_t> filled;  // entries of each table
  for (const Expansion::Jump& jump : body.jumps) {
    ASSIGN_OR_RETURN(const uint32_t to,
                     LabelAddress(body, jump.label, jump.scope, jump.line));
    Instruction& instruction = program_.code[jump.instruction];
    if (instruction.flow == Flow::kBranchTable) {
      program_.tables[instruction.target][filled[instruction.target]++] = to;
    } else {
      instruction.target = to;
    }
  }
  return absl::OkStatus();
}

}  // namespace

ModuleLayout LayOutModule(const RawModule& module) {
  ModuleLayout layout;
  layout.addresses.resize(module.variables.size());
  uint64_t end = 0;
  for (const Space space : {Space::kConst, Space::kGlobal}) {
    for (size_t i = 0; i < module.variables.size(); ++i) {
      const Variable& variable = module.variables[i];
      if (variable.space != space) continue;
      end = AlignUp(end, std::max<uint32_t>(variable.alignment, 16));
      layout.addresses[i] = kModuleBase + end;
      layout.image.resize(end + variable.bytes);
      std::copy(variable.initial.begin(), variable.initial.end(),
                layout.image.begin() + end);
      end += variable.bytes;
    }
    if (space == Space::kConst) layout.constant_bytes = end;
  }
  return layout;
}

absl::StatusOr<Program> DecodeEntry(const RawModule& module,
                                    const ModuleLayout& layout,
                                    const RawFunction& entry) {
  return EntryDecoder(module, layout, entry).Run();
}

}  // namespace regatta::ptxsim

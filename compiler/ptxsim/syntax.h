// A PTX module as it is written: names resolved to registers and variables,
// opcodes not yet understood. The parser makes it, the decoder turns each entry
// into a program.
#ifndef REGATTA_COMPILER_PTXSIM_SYNTAX_H_
#define REGATTA_COMPILER_PTXSIM_SYNTAX_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/ptxsim/ptx_type.h"

namespace regatta::ptxsim {

enum class Space : uint8_t {
  kGeneric,
  kGlobal,
  kShared,
  kLocal,
  kParam,
  kConst
};

struct Variable {
  std::string name;
  Space space = Space::kGlobal;
  Type type = Type::kB8;
  uint64_t bytes = 0;  // 0: an extern array, whose size the launch gives
  uint32_t alignment = 1;
  bool external = false;
  std::vector<std::byte> initial;  // empty: zeros
  int line = 0;
};

struct Operand {
  enum class Kind : uint8_t {
    kRegister,  // id: index in RawFunction::registers
    kVariable,  // id: index in RawFunction::variables, or ~index in the
                // module's
    kSpecial,   // name: %tid.x
    kInteger,   // integer (a negative number is its two's complement)
    kFloat32,   // integer: the bits
    kFloat,     // real
    kName,      // a label or function
    kSink,      // _
    kAddress,   // elements[0] is the base, offset is added
    kList,      // {a, b} or (a, b): elements
    kPair,      // a|b: elements
  };
  Kind kind = Kind::kInteger;
  bool negated = false;  // !p
  int id = 0;
  uint64_t integer = 0;
  double real = 0;
  int64_t offset = 0;  // of kAddress, and of a variable's name plus a number
  std::string name;
  std::vector<Operand> elements;
};

struct Statement {
  std::string opcode;                  // "ld"
  std::vector<std::string> modifiers;  // ".global", ".f32"
  std::vector<Operand> operands;
  int guard = -1;  // register; -1: none
  bool guard_negated = false;
  int line = 0;
  int scope = 0;

  // "ld.global.f32"
  std::string FullName() const;
};

struct Label {
  std::string name;
  int scope = 0;
  size_t statement = 0;  // the index of the statement that follows it
};

struct RawFunction {
  std::string name;
  bool is_entry = false;
  bool has_body = false;
  int line = 0;
  std::vector<int> parameters;  // variables of space kParam, in order
  std::vector<int> results;     // of a .func
  std::vector<Type> registers;  // of each
  std::vector<Variable> variables;
  std::vector<Statement> statements;
  std::vector<Label> labels;
  std::vector<int>
      scope_parents;  // of each scope; the body is 0, its parent -1
  // NAME: .branchtargets a, b; as (scope, name) and the names of the labels.
  std::map<std::pair<int, std::string>, std::vector<std::string>>
      branch_targets;
  uint32_t max_threads[3] = {0, 0, 0};       // .maxntid; 0: not given
  uint32_t required_threads[3] = {0, 0, 0};  // .reqntid; 0: not given
};

struct RawModule {
  int version_major = 0;
  int version_minor = 0;
  int target_sm = 0;  // 80 of sm_80 and compute_80
  std::vector<Variable> variables;
  std::vector<RawFunction> functions;

  // nullptr when there is none; a definition wins over a declaration.
  const RawFunction* FindFunction(const std::string& name) const;
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_SYNTAX_H_

// Loops to LLVM IR: one function per kernel, and one per parallel loop body.
// What is emitted is already vectorised and register-blocked, loads are shared
// and hoisted here, so that no mid-level pass has to run.
#ifndef REGATTA_COMPILER_CODEGEN_LLVM_KERNEL_EMITTER_H_
#define REGATTA_COMPILER_CODEGEN_LLVM_KERNEL_EMITTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/codegen/llvm/ir_types.h"
#include "compiler/codegen/llvm/register_plan.h"
#include "compiler/codegen/llvm/target_info.h"
#include "compiler/lower/lower.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace regatta::cpu {

// Shared by everything that is emitted into one module.
struct ModuleState {
  llvm::Module& module;
  const LoweredProgram& lowered;
  const Target& target;
  const Traits& traits;
  std::string name;  // the module's, first part of every symbol
};

// Emits `kernel` as an internal function; its arguments are the base pointers
// of `KernelBuffers` in order.
llvm::Function* EmitKernel(ModuleState& state, const loop::Kernel& kernel);

// Buffers in memory that `stmt` touches, ascending.
std::vector<int> KernelBuffers(const loop::Program& program,
                               const loop::Stmt& stmt);

// Adds the buffers that `value` loads from.
void CollectRead(const loop::Value& value, std::set<int>& buffers);

// One function's worth of emission.
class KernelEmitter {
 public:
  // `buffers[i]` is the function's i-th argument. For a parallel body the
  // function takes the iteration and the thread's slot after them;
  // `parallel_var` is bound to the former, else it is -1.
  KernelEmitter(ModuleState& state, llvm::Function* function,
                const std::vector<int>& buffers, int parallel_var);

  // Emits `body` and the return.
  void Run(const loop::Stmt& body);

 private:
  // A value in registers: one scalar for all lanes, or one element per lane.
  struct Val {
    llvm::Value* value = nullptr;
    bool vector = false;
  };

  // An affine form at the current place: a constant, multiples of the indices
  // of real loops (by level), and the step from lane to lane.
  struct Form {
    std::vector<std::pair<int, int64_t>> terms;  // level, coefficient
    int64_t constant = 0;
    int64_t lane = 0;
    friend auto operator<=>(const Form&, const Form&) = default;
  };
  struct FormGuard {
    Form form;
    int64_t bound;
    friend auto operator<=>(const FormGuard&, const FormGuard&) = default;
  };
  // Everything that the value of a load depends on, besides stores.
  struct LoadKey {
    int buffer;
    Form form;
    int count;
    int width;
    std::vector<FormGuard> guards;
    uint64_t pad_bits;
    // As computed with; as in memory; all elements in one integer.
    enum class As { kValue, kMemory, kWord } as = As::kValue;
    friend auto operator<=>(const LoadKey&, const LoadKey&) = default;
  };

  // A loop that is one in the emitted code. Level 0 is the function itself.
  struct Level {
    llvm::Value* index = nullptr;
    llvm::Instruction* anchor = nullptr;     // at the top of the body; what
                                             // depends on the index only goes
                                             // before it
    llvm::Instruction* preheader = nullptr;  // end of the block before the loop
    std::set<int> stored;                    // buffers stored inside
    std::map<LoadKey, Val> loads;
    std::map<std::pair<int, Form>, llvm::Value*> addresses;
    std::map<Form, llvm::Value*> indices;
    std::map<std::pair<FormGuard, int>, llvm::Value*> conditions;
    // Columns of square blocks of register buffers whose rows are vectors, by
    // buffer and first element.
    std::map<std::pair<int, int64_t>, std::vector<llvm::Value*>> columns;
    int hoisted = 0;  // loads moved before the loop
  };
  // An element of a register buffer: `within` elements into a slot of `count`.
  struct SlotPlace {
    llvm::AllocaInst* slot;
    int within;
    int count;
  };
  struct Binding {
    int level = -1;  // -1: constant
    int64_t constant = 0;
  };

  // kernel_emitter.cc: statements
  void EmitStmt(const loop::Stmt& stmt);
  void EmitFor(const loop::Stmt& stmt);
  void EmitSerial(const loop::Stmt& stmt);
  void EmitExpanded(const loop::Stmt& stmt, int64_t first, int64_t count);
  void EmitLoop(const loop::Stmt& stmt, int64_t first, int64_t count,
                int64_t copies);
  void EmitVector(const loop::Stmt& stmt);
  void EmitParallel(const loop::Stmt& stmt);
  std::vector<Lanes> Chunks(const loop::Stmt& vector_loop) const;
  void EmitStore(const loop::Stmt& stmt);
  void EmitAccumulate(const loop::Stmt& stmt);
  void CreateSlots(const loop::Stmt& body);

  // kernel_memory.cc: addresses, loads, stores
  Form Resolve(const Affine& form) const;
  std::vector<FormGuard> ResolveGuards(const std::vector<loop::Guard>& guards);
  int LevelOf(const Form& form) const;
  llvm::Value* Address(int buffer, const Form& form);
  llvm::Value* IndexValue(const Form& form);  // i64, lane 0
  llvm::Value* ScalarCondition(const FormGuard& guard);
  llvm::Value* LaneCondition(const FormGuard& guard);
  Val Load(const loop::Value& load);
  Val LoadOnce(LoadKey key, double pad);
  Val LoadAt(const LoadKey& key, double pad);
  llvm::Value* LoadScalar(const LoadKey& key, llvm::Value* address, double pad);
  llvm::Value* LoadVector(const LoadKey& key, llvm::Value* address, double pad);
  llvm::Value* LoadStrided(const LoadKey& key, llvm::Value* address,
                           llvm::Value* mask, llvm::Value* pad);
  llvm::Value* PadAddress(DType dtype, double pad);
  void StoreTo(int buffer, const Form& form, Val value, bool streaming = false);
  void StoreMemory(int buffer, const Form& form, Val value, bool streaming);
  void StoreStreaming(llvm::Value* vector, llvm::Value* address,
                      llvm::Align element);
  void Forget(int buffer, const Form& form);
  llvm::Constant* ActiveLanes() const;
  llvm::Constant* LaneSteps(llvm::Type* integer, int64_t step) const;

  // kernel_registers.cc: register buffers
  Val LoadRegister(int buffer, const Form& form);
  llvm::Value* LoadColumn(int buffer, const Form& form);
  void StoreRegister(int buffer, const Form& form, Val value);
  SlotPlace SlotOf(int buffer, int64_t first) const;
  llvm::Value* ReadSlot(const SlotPlace& place, int count, int width);
  void WriteSlot(const SlotPlace& place, int count, int width,
                 llvm::Value* value);

  // kernel_products.cc: blocks of sums of products
  void EmitProducts(const loop::Stmt& stmt);
  llvm::Value* ProductOperand(const loop::Value& load, int elements, int group,
                              int copies);
  llvm::Value* LoadElements(const loop::Value& load, int count, LoadKey::As as);
  bool EmitInterleaved(const loop::Stmt& block);

  // kernel_values.cc: arithmetic
  Val Emit(const loop::Value& value);
  Val EmitIndexValue(const loop::Value& value);
  Val EmitBinary(const loop::Value& value);
  Val EmitSelect(const loop::Value& value);
  Val EmitCast(const loop::Value& value);
  Val EmitShort(const loop::Value& value);  // an i8 in 16 bits
  llvm::Value* ShortLane(const loop::Value& value);
  // Of vectors of 16-bit elements, in 32 bits: one instruction where the target
  // has it.
  llvm::Value* WideProduct(llvm::Value* a, llvm::Value* b);
  llvm::Value* Arithmetic(BinaryOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* Extreme(llvm::Intrinsic::ID id, llvm::Value* a, llvm::Value* b);
  llvm::Value* IntegerDivide(llvm::Value* a, llvm::Value* b);
  llvm::Value* Combine(Reduction reduction, llvm::Value* a, llvm::Value* b);
  llvm::Value* AcrossLanes(Reduction reduction, Val value, DType dtype);
  llvm::Value* ToVector(Val value);
  llvm::Value* Splat(llvm::Value* scalar, int lanes);
  void Unify(Val& a, Val& b);  // both vectors when one is

  llvm::LLVMContext& context() { return state_.module.getContext(); }
  const loop::Buffer& buffer(int id) const {
    return state_.lowered.program.buffers[id];
  }

  ModuleState& state_;
  llvm::Function* function_;
  std::vector<int> buffers_;
  int parallel_var_;
  Builder b_;
  std::map<int, llvm::Value*> bases_;  // per buffer in memory
  std::map<int, Binding> vars_;
  std::vector<Level> levels_;
  Lanes lanes_;
  // Register buffers: a value of its own per slot, by buffer and first element.
  std::map<std::pair<int, int64_t>, llvm::AllocaInst*> slots_;
  std::unique_ptr<RegisterPlan> plan_;
  std::map<std::pair<llvm::Value*, int>, llvm::Value*> splats_;
  bool streamed_ = false;  // a streaming store was emitted
};

}  // namespace regatta::cpu

#endif  // REGATTA_COMPILER_CODEGEN_LLVM_KERNEL_EMITTER_H_

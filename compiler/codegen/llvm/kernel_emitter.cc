// Statements and loops. Loads and stores are in kernel_memory.cc, arithmetic in
// kernel_values.cc.
#include "compiler/codegen/llvm/kernel_emitter.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/codegen/llvm/parallel_runtime.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

namespace regatta::cpu {
namespace {

void CollectStored(const loop::Stmt& stmt, std::set<int>& stored) {
  loop::VisitBuffers(stmt, [&](int buffer, bool stores) {
    if (stores) stored.insert(buffer);
  });
}

void CollectTouched(const loop::Stmt& stmt, std::set<int>& touched) {
  loop::VisitBuffers(stmt, [&](int buffer, bool) { touched.insert(buffer); });
}

// Bytes of the widest and the narrowest element that a vector loop handles.
struct ElementSizes {
  int64_t widest = 1;
  int64_t narrowest = 8;
};

void CollectSizes(const loop::Program& program, const loop::Value& value,
                  ElementSizes& sizes) {
  // f16 and bf16 are computed in f32; conditions fit any mask.
  if (value.dtype != DType::kBool) {
    const int64_t bytes = DTypeBytes(value.dtype);
    sizes.widest =
        std::max(sizes.widest, IsFloat(value.dtype) && bytes < 4 ? 4 : bytes);
  }
  if (value.kind == loop::Value::Kind::kLoad) {
    sizes.narrowest = std::min(sizes.narrowest, DTypeBytes(value.dtype));
  }
  for (const loop::ValuePtr& operand : value.operands) {
    CollectSizes(program, *operand, sizes);
  }
}

void CollectSizes(const loop::Program& program, const loop::Stmt& stmt,
                  ElementSizes& sizes) {
  if (stmt.kind == loop::Stmt::Kind::kStore) {
    sizes.narrowest = std::min(sizes.narrowest,
                               DTypeBytes(program.buffers[stmt.buffer].dtype));
    CollectSizes(program, *stmt.value, sizes);
  }
  for (const loop::StmtPtr& child : stmt.body) {
    CollectSizes(program, *child, sizes);
  }
}

// A product of two bytes in i32.
bool MultipliesBytes(const loop::Value& value) {
  const auto byte = [](const loop::Value& operand) {
    return operand.kind == loop::Value::Kind::kCast &&
           operand.dtype == DType::kI32 &&
           operand.operands[0]->dtype == DType::kI8;
  };
  return value.kind == loop::Value::Kind::kBinary &&
         value.binary == BinaryOp::kMul && byte(*value.operands[0]) &&
         byte(*value.operands[1]);
}

int PowerOfTwoAtMost(int64_t n) {
  int power = 1;
  while (power * 2 <= n) power *= 2;
  return power;
}

}  // namespace

void CollectRead(const loop::Value& value, std::set<int>& buffers) {
  if (value.kind == loop::Value::Kind::kLoad) buffers.insert(value.buffer);
  for (const loop::ValuePtr& operand : value.operands) {
    CollectRead(*operand, buffers);
  }
}

std::vector<int> KernelBuffers(const loop::Program& program,
                               const loop::Stmt& stmt) {
  std::set<int> touched;
  CollectTouched(stmt, touched);
  std::vector<int> buffers;
  for (const int id : touched) {
    if (program.buffers[id].scope != loop::Scope::kRegister) {
      buffers.push_back(id);
    }
  }
  return buffers;
}

llvm::Function* EmitKernel(ModuleState& state, const loop::Kernel& kernel) {
  const std::vector<int> buffers =
      KernelBuffers(state.lowered.program, *kernel.body);
  llvm::LLVMContext& context = state.module.getContext();
  std::vector<llvm::Type*> arguments(buffers.size(),
                                     llvm::PointerType::get(context, 0));
  llvm::Function* function = llvm::Function::Create(
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), arguments, false),
      llvm::Function::InternalLinkage,
      absl::StrCat(state.name, "_", kernel.name), state.module);
  KernelEmitter(state, function, buffers, -1).Run(*kernel.body);
  return function;
}

KernelEmitter::KernelEmitter(ModuleState& state, llvm::Function* function,
                             const std::vector<int>& buffers, int parallel_var)
    : state_(state),
      function_(function),
      buffers_(buffers),
      parallel_var_(parallel_var),
      b_(state.module.getContext()) {
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  b_.setFastMathFlags(flags);
  function_->setDoesNotThrow();
  for (size_t i = 0; i < buffers_.size(); ++i) {
    function_->addParamAttr(i, llvm::Attribute::NoAlias);
    if (buffer(buffers_[i]).scope == loop::Scope::kInput) {
      function_->addParamAttr(i, llvm::Attribute::ReadOnly);
    }
  }
}

void KernelEmitter::Run(const loop::Stmt& body) {
  auto* entry = llvm::BasicBlock::Create(context(), "entry", function_);
  b_.SetInsertPoint(entry);
  Level function_level;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    llvm::Value* base = function_->getArg(i);
    if (parallel_var_ >= 0 && buffer(buffers_[i]).per_thread) {
      llvm::Value* slot = function_->getArg(buffers_.size() + 1);
      const int64_t stride = state_.lowered.workspace_stride[buffers_[i]];
      base = b_.CreatePtrAdd(base, b_.CreateMul(slot, b_.getInt64(stride)));
    }
    bases_[buffers_[i]] = base;
  }
  if (parallel_var_ >= 0) {
    function_level.index = function_->getArg(buffers_.size());
    vars_[parallel_var_] = {0, 0};
  }
  CreateSlots(body);
  auto* start = llvm::BasicBlock::Create(context(), "start", function_);
  function_level.anchor = b_.CreateBr(start);
  CollectStored(body, function_level.stored);
  levels_.push_back(std::move(function_level));
  b_.SetInsertPoint(start);
  EmitStmt(body);
  if (streamed_ && state_.traits.aligned_streams) {
    b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  }
  b_.CreateRetVoid();

  std::vector<llvm::AllocaInst*> promotable;
  for (const auto& [place, slot] : slots_) {
    if (llvm::isAllocaPromotable(slot)) promotable.push_back(slot);
  }
  llvm::DominatorTree dominators(*function_);
  llvm::PromoteMemToReg(promotable, dominators);
}

void KernelEmitter::CreateSlots(const loop::Stmt& body) {
  const loop::Program& program = state_.lowered.program;
  plan_ = std::make_unique<RegisterPlan>(
      program, body,
      [this](const loop::Stmt& vector_loop) { return Chunks(vector_loop); });
  std::set<int> touched;
  CollectTouched(body, touched);
  for (const int id : touched) {
    if (buffer(id).scope != loop::Scope::kRegister) continue;
    const auto slots = plan_->slots().find(id);
    if (slots == plan_->slots().end()) {
      auto* type = llvm::ArrayType::get(MemoryType(buffer(id).dtype, context()),
                                        buffer(id).elements);
      auto* memory = b_.CreateAlloca(type);
      memory->setAlignment(llvm::Align(64));
      bases_[id] = memory;
      continue;
    }
    llvm::Type* scalar = RegisterType(buffer(id).dtype, context());
    for (const RegisterPlan::Slot& slot : slots->second) {
      llvm::Type* type = slot.width == 1
                             ? scalar
                             : llvm::FixedVectorType::get(scalar, slot.width);
      slots_[{id, slot.first}] = b_.CreateAlloca(type);
    }
  }
}

void KernelEmitter::EmitStmt(const loop::Stmt& stmt) {
  switch (stmt.kind) {
    case loop::Stmt::Kind::kBlock:
      if (EmitInterleaved(stmt)) return;
      for (const loop::StmtPtr& child : stmt.body) EmitStmt(*child);
      return;
    case loop::Stmt::Kind::kFor:
      EmitFor(stmt);
      return;
    case loop::Stmt::Kind::kStore:
      EmitStore(stmt);
      return;
    case loop::Stmt::Kind::kIf:
    case loop::Stmt::Kind::kLet:
    case loop::Stmt::Kind::kBarrier:
    case loop::Stmt::Kind::kIntrinsic:
      CHECK(false) << "a statement of device kernels";
  }
}

void KernelEmitter::EmitFor(const loop::Stmt& stmt) {
  switch (stmt.loop) {
    case loop::LoopKind::kSerial:
      EmitSerial(stmt);
      break;
    case loop::LoopKind::kUnrolled:
      EmitExpanded(stmt, 0, stmt.extent);
      break;
    case loop::LoopKind::kVector:
      EmitVector(stmt);
      break;
    case loop::LoopKind::kParallel:
      if (state_.lowered.program.threads > 1) {
        EmitParallel(stmt);
      } else {
        EmitSerial(stmt);
      }
      break;
    case loop::LoopKind::kGroup:
    case loop::LoopKind::kThread:
      CHECK(false) << "a loop of device kernels";
  }
  vars_.erase(stmt.var);
}

void KernelEmitter::EmitSerial(const loop::Stmt& stmt) {
  const int64_t copies = std::min(stmt.unroll, stmt.extent);
  const int64_t main = stmt.extent / copies * copies;
  EmitLoop(stmt, 0, main, copies);
  if (stmt.extent > main) EmitLoop(stmt, main, stmt.extent - main, 1);
}

void KernelEmitter::EmitExpanded(const loop::Stmt& stmt, int64_t first,
                                 int64_t count) {
  for (int64_t i = first; i < first + count; ++i) {
    vars_[stmt.var] = {-1, i};
    EmitStmt(*stmt.body[0]);
  }
}

// Iterations [first, first + count), `copies` at a time. Tested at the bottom:
// there is at least one.
void KernelEmitter::EmitLoop(const loop::Stmt& stmt, int64_t first,
                             int64_t count, int64_t copies) {
  if (count == copies) {
    EmitExpanded(stmt, first, count);
    return;
  }
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* body = llvm::BasicBlock::Create(context(), "loop", function_);
  auto* after = llvm::BasicBlock::Create(context(), "after", function_);
  Level level;
  level.preheader = b_.CreateBr(body);
  b_.SetInsertPoint(body);
  llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2);
  index->addIncoming(b_.getInt64(0), before);
  level.index = index;
  // A marker only: what is hoisted to the top goes before it.
  level.anchor = b_.Insert(llvm::CastInst::Create(llvm::Instruction::BitCast,
                                                  index, index->getType()));
  CollectStored(stmt, level.stored);
  levels_.push_back(std::move(level));
  const int depth = static_cast<int>(levels_.size()) - 1;
  for (int64_t copy = 0; copy < copies; ++copy) {
    vars_[stmt.var] = {depth, first + copy};
    EmitStmt(*stmt.body[0]);
  }
  levels_.back().anchor->eraseFromParent();
  const std::set<int> stored = levels_.back().stored;
  levels_.pop_back();
  llvm::Value* next = b_.CreateAdd(index, b_.getInt64(copies), "", true, true);
  b_.CreateCondBr(b_.CreateICmpEQ(next, b_.getInt64(count)), after, body);
  index->addIncoming(next, b_.GetInsertBlock());
  b_.SetInsertPoint(after);
  // What the loop stored is no longer what was loaded before it.
  for (Level& outer : levels_) {
    std::erase_if(outer.loads, [&](const auto& entry) {
      return stored.count(entry.first.buffer) > 0;
    });
  }
}

void KernelEmitter::EmitVector(const loop::Stmt& stmt) {
  for (const Lanes& lanes : Chunks(stmt)) {
    lanes_ = lanes;
    vars_[stmt.var] = {-1, lanes.first};
    EmitStmt(*stmt.body[0]);
  }
  lanes_ = Lanes();
}

// Whole vectors first. The rest is one masked vector where the target has such
// loads and stores, else shorter vectors by powers of two.
std::vector<Lanes> KernelEmitter::Chunks(const loop::Stmt& stmt) const {
  ElementSizes sizes;
  CollectSizes(state_.lowered.program, stmt, sizes);
  const Traits& traits = state_.traits;
  const int full =
      std::max<int>(1, traits.vector_bytes / static_cast<int>(sizes.widest));
  const bool masked =
      sizes.narrowest >= 4 ? traits.masked_memory : traits.masked_small_memory;
  std::vector<Lanes> chunks;
  int64_t first = 0;
  while (first < stmt.extent) {
    const int64_t left = stmt.extent - first;
    Lanes lanes{stmt.var, first, full, full};
    if (left < full) {
      const int below = PowerOfTwoAtMost(left);
      const bool exact = below == left;
      lanes.width = exact || !masked ? below : below * 2;
      lanes.count = static_cast<int>(std::min<int64_t>(left, lanes.width));
    }
    chunks.push_back(lanes);
    first += lanes.count;
  }
  return chunks;
}

void KernelEmitter::EmitStore(const loop::Stmt& stmt) {
  if (stmt.accumulate != Reduction::kNone) {
    EmitAccumulate(stmt);
    return;
  }
  StoreTo(stmt.buffer, Resolve(stmt.offset), Emit(*stmt.value), stmt.streaming);
}

void KernelEmitter::EmitAccumulate(const loop::Stmt& stmt) {
  const Form form = Resolve(stmt.offset);
  const DType dtype = buffer(stmt.buffer).dtype;
  const bool across = lanes_.width > 1 && form.lane == 0;
  const loop::Value& value = *stmt.value;
  if (value.kind == loop::Value::Kind::kProducts) {
    EmitProducts(stmt);
    return;
  }
  loop::Value current;
  current.kind = loop::Value::Kind::kLoad;
  current.dtype = dtype;
  current.buffer = stmt.buffer;
  current.offset = stmt.offset;
  if (across) {
    llvm::Value* reduced = AcrossLanes(stmt.accumulate, Emit(value), dtype);
    llvm::Value* old = Emit(current).value;
    StoreTo(stmt.buffer, form, {Combine(stmt.accumulate, old, reduced), false});
    return;
  }
  const bool multiply_add = stmt.accumulate == Reduction::kSum &&
                            IsFloat(dtype) &&
                            value.kind == loop::Value::Kind::kBinary &&
                            value.binary == BinaryOp::kMul;
  if (multiply_add) {
    Val a = Emit(*value.operands[0]);
    Val b = Emit(*value.operands[1]);
    Val old = Emit(current);
    Unify(a, b);
    Unify(a, old);
    Unify(b, old);
    llvm::Value* sum =
        b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {old.value->getType()},
                           {a.value, b.value, old.value});
    StoreTo(stmt.buffer, form, {sum, old.vector});
    return;
  }
  if (stmt.accumulate == Reduction::kSum && state_.traits.widening_multiply &&
      MultipliesBytes(value)) {
    Val a = EmitShort(*value.operands[0]->operands[0]);
    Val b = EmitShort(*value.operands[1]->operands[0]);
    Val old = Emit(current);
    if (a.vector || b.vector) {
      a = {ToVector(a), true};
      b = {ToVector(b), true};
      Unify(a, old);
      StoreTo(stmt.buffer, form,
              {b_.CreateAdd(old.value, WideProduct(a.value, b.value)), true});
      return;
    }
  }
  Val operand = Emit(value);
  Val old = Emit(current);
  Unify(operand, old);
  StoreTo(stmt.buffer, form,
          {Combine(stmt.accumulate, old.value, operand.value), old.vector});
}

// The body becomes a function of its buffers, the iteration and the thread's
// slot; a second one unpacks the pointers for the pool.
void KernelEmitter::EmitParallel(const loop::Stmt& stmt) {
  const std::vector<int> buffers =
      KernelBuffers(state_.lowered.program, *stmt.body[0]);
  llvm::Type* pointer = llvm::PointerType::get(context(), 0);
  llvm::Type* i64 = b_.getInt64Ty();
  std::vector<llvm::Type*> arguments(buffers.size(), pointer);
  arguments.insert(arguments.end(), {i64, i64});
  llvm::Function* body = llvm::Function::Create(
      llvm::FunctionType::get(b_.getVoidTy(), arguments, false),
      llvm::Function::InternalLinkage,
      absl::StrCat(function_->getName().str(), "_v", stmt.var), state_.module);
  KernelEmitter(state_, body, buffers, stmt.var).Run(*stmt.body[0]);

  auto* table_type =
      llvm::ArrayType::get(pointer, std::max<size_t>(1, buffers.size()));
  llvm::Value* table = nullptr;
  {
    Builder::InsertPointGuard guard(b_);
    b_.SetInsertPoint(&*function_->getEntryBlock().getFirstInsertionPt());
    table = b_.CreateAlloca(table_type);
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    b_.CreateStore(bases_.at(buffers[i]),
                   b_.CreateConstGEP2_64(table_type, table, 0, i));
  }
  EmitParallelCall(b_, body, buffers.size(), table, stmt.extent,
                   state_.lowered.program.threads);
}

}  // namespace regatta::cpu

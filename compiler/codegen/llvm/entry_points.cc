#include "compiler/codegen/llvm/entry_points.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/lower/passes/plan_workspace.h"
#include "compiler/module/c_interface.h"

namespace regatta::cpu {
namespace {

// A workspace up to this size lives on the caller's stack.
constexpr int64_t kMaxStackBytes = 16 << 10;

class EntryPoints {
 public:
  EntryPoints(ModuleState& state, const std::vector<llvm::Function*>& kernels)
      : state_(state),
        kernels_(kernels),
        context_(state.module.getContext()),
        b_(context_),
        pointer_(llvm::PointerType::get(context_, 0)),
        word_(state.module.getDataLayout().getIntPtrType(context_)),
        bytes_(state.lowered.workspace_bytes) {
    for (const loop::Buffer& buffer : state.lowered.program.buffers) {
      if (buffer.scope == loop::Scope::kInput ||
          buffer.scope == loop::Scope::kOutput) {
        ++tensors_;
      }
    }
  }

  void Emit() {
    EmitChecked();
    EmitWithOwnWorkspace();
    EmitWithWorkspace();
    EmitUniform();
    auto* size = new llvm::GlobalVariable(state_.module, word_, true,
                                          llvm::GlobalValue::ExternalLinkage,
                                          llvm::ConstantInt::get(word_, bytes_),
                                          state_.name + "_workspace_bytes");
    size->setAlignment(llvm::Align(word_->getIntegerBitWidth() / 8));
  }

 private:
  llvm::Function* NewFunction(const std::string& name,
                              std::vector<llvm::Type*> arguments,
                              bool exported) {
    llvm::Function* function = llvm::Function::Create(
        llvm::FunctionType::get(b_.getInt32Ty(), arguments, false),
        exported ? llvm::GlobalValue::ExternalLinkage
                 : llvm::GlobalValue::InternalLinkage,
        name, state_.module);
    function->setDoesNotThrow();
    // Some calling conventions want the whole register defined.
    function->addRetAttr(llvm::Attribute::SExt);
    b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function));
    return function;
  }

  // Returns `code` from `function` when `wrong`, goes on otherwise.
  void ReturnIf(llvm::Function* function, llvm::Value* wrong, int code) {
    auto* refuse = llvm::BasicBlock::Create(context_, "refuse", function);
    auto* next = llvm::BasicBlock::Create(context_, "next", function);
    b_.CreateCondBr(wrong, refuse, next);
    b_.SetInsertPoint(refuse);
    b_.CreateRet(b_.getInt32(code));
    b_.SetInsertPoint(next);
  }

  llvm::Value* LowBits(llvm::Value* pointer, int64_t alignment) {
    return b_.CreateAnd(b_.CreatePtrToInt(pointer, word_),
                        llvm::ConstantInt::get(word_, alignment - 1));
  }

  // int (tensors..., workspace): checks, then the kernels in order.
  void EmitChecked() {
    std::vector<llvm::Type*> arguments(tensors_ + 1, pointer_);
    checked_ = NewFunction(state_.name + "_checked", arguments, false);
    llvm::Value* null = b_.getFalse();
    llvm::Value* low_bits = llvm::ConstantInt::get(word_, 0);
    for (int i = 0; i < tensors_; ++i) {
      llvm::Value* argument = checked_->getArg(i);
      null = b_.CreateOr(null, b_.CreateIsNull(argument));
      const DType dtype = state_.lowered.program.buffers[i].dtype;
      low_bits = b_.CreateOr(low_bits, LowBits(argument, DTypeBytes(dtype)));
    }
    llvm::Value* workspace = checked_->getArg(tensors_);
    if (bytes_ > 0) {
      null = b_.CreateOr(null, b_.CreateIsNull(workspace));
      low_bits = b_.CreateOr(low_bits, LowBits(workspace, kWorkspaceAlignment));
    }
    ReturnIf(checked_, null, kCallNullArgument);
    ReturnIf(checked_, b_.CreateIsNotNull(low_bits), kCallMisaligned);
    const loop::Program& program = state_.lowered.program;
    for (size_t k = 0; k < kernels_.size(); ++k) {
      std::vector<llvm::Value*> bases;
      for (const int id : KernelBuffers(program, *program.kernels[k].body)) {
        bases.push_back(
            id < tensors_
                ? static_cast<llvm::Value*>(checked_->getArg(id))
                : b_.CreateConstGEP1_64(b_.getInt8Ty(), workspace,
                                        state_.lowered.workspace_offset[id]));
      }
      b_.CreateCall(kernels_[k], bases);
    }
    b_.CreateRet(b_.getInt32(kCallOk));
  }

  llvm::Value* CallChecked(llvm::Function* from, llvm::Value* workspace) {
    std::vector<llvm::Value*> arguments;
    for (int i = 0; i < tensors_; ++i) arguments.push_back(from->getArg(i));
    arguments.push_back(workspace);
    return b_.CreateCall(checked_, arguments);
  }

  void EmitWithOwnWorkspace() {
    llvm::Function* function = NewFunction(
        state_.name, std::vector<llvm::Type*>(tensors_, pointer_), true);
    llvm::Value* null = llvm::Constant::getNullValue(pointer_);
    if (bytes_ == 0) {
      b_.CreateRet(CallChecked(function, null));
      return;
    }
    if (bytes_ <= kMaxStackBytes) {
      auto* block =
          b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), bytes_));
      block->setAlignment(llvm::Align(kWorkspaceAlignment));
      b_.CreateRet(CallChecked(function, block));
      return;
    }
    llvm::FunctionCallee allocate = state_.module.getOrInsertFunction(
        "aligned_alloc", pointer_, word_, word_);
    llvm::FunctionCallee release =
        state_.module.getOrInsertFunction("free", b_.getVoidTy(), pointer_);
    llvm::Value* block = b_.CreateCall(
        allocate, {llvm::ConstantInt::get(word_, kWorkspaceAlignment),
                   llvm::ConstantInt::get(word_, bytes_)});
    ReturnIf(function, b_.CreateIsNull(block), kCallNoMemory);
    llvm::Value* code = CallChecked(function, block);
    b_.CreateCall(release, {block});
    b_.CreateRet(code);
  }

  void EmitWithWorkspace() {
    llvm::Function* function =
        NewFunction(state_.name + "_ws",
                    std::vector<llvm::Type*>(tensors_ + 1, pointer_), true);
    b_.CreateRet(CallChecked(function, function->getArg(tensors_)));
  }

  // int (void* const* tensors, void* workspace)
  void EmitUniform() {
    llvm::Function* function =
        NewFunction(state_.name + "_call", {pointer_, pointer_}, true);
    ReturnIf(function, b_.CreateIsNull(function->getArg(0)), kCallNullArgument);
    std::vector<llvm::Value*> arguments;
    for (int i = 0; i < tensors_; ++i) {
      llvm::Value* place =
          b_.CreateConstGEP1_64(pointer_, function->getArg(0), i);
      arguments.push_back(b_.CreateLoad(pointer_, place));
    }
    arguments.push_back(function->getArg(1));
    b_.CreateRet(b_.CreateCall(checked_, arguments));
  }

  ModuleState& state_;
  const std::vector<llvm::Function*>& kernels_;
  llvm::LLVMContext& context_;
  Builder b_;
  llvm::Type* pointer_;
  llvm::Type* word_;  // size_t
  int64_t bytes_;
  int tensors_ = 0;
  llvm::Function* checked_ = nullptr;
};

}  // namespace

void EmitEntryPoints(ModuleState& state,
                     const std::vector<llvm::Function*>& kernels) {
  EntryPoints(state, kernels).Emit();
}

}  // namespace regatta::cpu

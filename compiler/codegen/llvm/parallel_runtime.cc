#include "compiler/codegen/llvm/parallel_runtime.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

namespace regatta::cpu {

extern const char kPoolIr64[];  // generated: see runtime/embed.cmake
extern const char kPoolIr32[];

namespace {

constexpr char kParallelFor[] = "regatta_parallel_for";

// void (ptr table, word iteration, word slot): loads the pointers and calls
// `body`. The pool's integers are as wide as pointers.
llvm::Function* EmitUnpacker(llvm::Module& module, llvm::Function* body,
                             int64_t pointers) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* word = module.getDataLayout().getIntPtrType(context);
  llvm::Function* function = llvm::Function::Create(
      llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                              {pointer, word, word}, false),
      llvm::Function::InternalLinkage, body->getName() + "_call", module);
  function->setDoesNotThrow();
  Builder b(llvm::BasicBlock::Create(context, "entry", function));
  std::vector<llvm::Value*> arguments;
  for (int64_t i = 0; i < pointers; ++i) {
    llvm::Value* place = b.CreateConstGEP1_64(pointer, function->getArg(0), i);
    arguments.push_back(b.CreateLoad(pointer, place));
  }
  arguments.push_back(b.CreateZExt(function->getArg(1), b.getInt64Ty()));
  arguments.push_back(b.CreateZExt(function->getArg(2), b.getInt64Ty()));
  b.CreateCall(body, arguments);
  b.CreateRetVoid();
  return function;
}

// What the C compiler said about its own target does not hold for ours.
void ForgetTarget(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (function.isIntrinsic()) continue;
    function.setAttributes(llvm::AttributeList());
    function.setDoesNotThrow();
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
        call->setAttributes(llvm::AttributeList());
      }
    }
  }
  if (llvm::NamedMDNode* flags = module.getModuleFlagsMetadata()) {
    module.eraseNamedMetadata(flags);
  }
  if (llvm::NamedMDNode* ident = module.getNamedMetadata("llvm.ident")) {
    module.eraseNamedMetadata(ident);
  }
}

// Links the pool into `module`; what it exports is still external.
absl::Status AddPool(llvm::Module& module) {
  const bool wide = module.getDataLayout().getPointerSize() == 8;
  llvm::SMDiagnostic error;
  std::unique_ptr<llvm::Module> pool = llvm::parseAssembly(
      llvm::MemoryBufferRef(wide ? kPoolIr64 : kPoolIr32, "pool"), error,
      module.getContext());
  if (pool == nullptr) {
    return absl::InternalError(
        absl::StrCat("thread pool: ", error.getMessage().str()));
  }
  ForgetTarget(*pool);
  pool->setTargetTriple(module.getTargetTriple());
  pool->setDataLayout(module.getDataLayout());
  if (llvm::Linker::linkModules(module, std::move(pool))) {
    return absl::InternalError("thread pool: LLVM could not link it");
  }
  return absl::OkStatus();
}

}  // namespace

void EmitParallelCall(Builder& b, llvm::Function* body, int64_t pointers,
                      llvm::Value* table, int64_t extent, int threads) {
  llvm::Module& module = *body->getParent();
  llvm::Type* pointer = llvm::PointerType::get(module.getContext(), 0);
  llvm::Type* word = module.getDataLayout().getIntPtrType(module.getContext());
  llvm::FunctionCallee parallel_for = module.getOrInsertFunction(
      kParallelFor, b.getVoidTy(), pointer, pointer, word, word);
  b.CreateCall(parallel_for, {EmitUnpacker(module, body, pointers), table,
                              llvm::ConstantInt::get(word, extent),
                              llvm::ConstantInt::get(word, threads)});
}

absl::Status LinkParallelRuntime(llvm::Module& module) {
  if (module.getFunction(kParallelFor) == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(AddPool(module));
  module.getFunction(kParallelFor)
      ->setLinkage(llvm::GlobalValue::InternalLinkage);
  return absl::OkStatus();
}

void ExpectParallelRuntime(llvm::Module& module) {
  if (llvm::Function* call = module.getFunction(kParallelFor)) {
    call->setVisibility(llvm::GlobalValue::HiddenVisibility);
  }
}

bool NeedsParallelRuntime(const std::vector<std::string>& undefined) {
  return std::find(undefined.begin(), undefined.end(), kParallelFor) !=
         undefined.end();
}

absl::Status EmitParallelRuntime(llvm::Module& module) {
  RETURN_IF_ERROR(AddPool(module));
  module.getFunction(kParallelFor)
      ->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return absl::OkStatus();
}

}  // namespace regatta::cpu

// Blocks of sums of products, and the stores that bring their operands into
// order.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "compiler/codegen/llvm/kernel_emitter.h"
#include "compiler/codegen/llvm/product_instructions.h"

namespace regatta::cpu {
namespace {

// a0 b0 a1 b1 ...
llvm::Value* InterleavePair(Builder& b, llvm::Value* x, llvm::Value* y) {
  const int n =
      llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements();
  std::vector<int> order;
  for (int i = 0; i < n; ++i) order.insert(order.end(), {i, n + i});
  return b.CreateShuffleVector(x, y, order);
}

// Element 0 of all of `parts`, then element 1, ... REQUIRES: a power of two.
llvm::Value* Interleave(Builder& b, const std::vector<llvm::Value*>& parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<llvm::Value*> even, odd;
  for (size_t i = 0; i < parts.size(); i += 2) {
    even.push_back(parts[i]);
    odd.push_back(parts[i + 1]);
  }
  return InterleavePair(b, Interleave(b, even), Interleave(b, odd));
}

}  // namespace

// The `count` elements from that of `load` on.
llvm::Value* KernelEmitter::LoadElements(const loop::Value& load, int count,
                                         LoadKey::As as) {
  Form form = Resolve(load.offset);
  form.lane = 1;
  LoadKey key{load.buffer, std::move(form), count, count, {}, 0, as};
  return LoadOnce(std::move(key), 0).value;
}

// A vector of `copies` times `elements` elements, in groups of `group` that are
// moved as one.
llvm::Value* KernelEmitter::ProductOperand(const loop::Value& load,
                                           int elements, int group,
                                           int copies) {
  const bool in_slot = buffer(load.buffer).scope == loop::Scope::kRegister &&
                       bases_.count(load.buffer) == 0;
  if (copies == 1) {
    if (!in_slot) return LoadElements(load, elements, LoadKey::As::kMemory);
    const SlotPlace place = SlotOf(load.buffer, Resolve(load.offset).constant);
    return ReadSlot(place, elements, elements);
  }
  CHECK(elements == group);
  llvm::Type* element = MemoryType(load.dtype, context());
  llvm::Type* word =
      b_.getIntNTy(static_cast<int>(group * 8 * DTypeBytes(load.dtype)));
  llvm::Type* type = llvm::FixedVectorType::get(element, group * copies);
  if (in_slot) {
    // One of the words of a register: where there is an instruction that takes
    // a lane, it is never moved.
    const SlotPlace place = SlotOf(load.buffer, Resolve(load.offset).constant);
    auto* slot =
        llvm::dyn_cast<llvm::FixedVectorType>(place.slot->getAllocatedType());
    const int width =
        slot == nullptr ? 1 : static_cast<int>(slot->getNumElements());
    if (width % group == 0 && place.within % group == 0 && width > group) {
      llvm::Value* words =
          b_.CreateBitCast(b_.CreateLoad(slot, place.slot),
                           llvm::FixedVectorType::get(word, width / group));
      const std::vector<int> lane(copies, place.within / group);
      return b_.CreateBitCast(b_.CreateShuffleVector(words, lane), type);
    }
    llvm::Value* one =
        b_.CreateBitCast(ReadSlot(place, elements, elements), word);
    return b_.CreateBitCast(b_.CreateVectorSplat(copies, one), type);
  }
  llvm::Value* one = LoadElements(load, elements, LoadKey::As::kWord);
  return b_.CreateBitCast(Splat(one, copies), type);
}

void KernelEmitter::EmitProducts(const loop::Stmt& stmt) {
  const loop::Value& value = *stmt.value;
  const loop::ProductBlock& block = value.block;
  const DType type = value.operands[0]->dtype;
  const ProductInstruction* instruction =
      FindProductInstruction(block, type, state_.target);
  CHECK(instruction != nullptr);  // CheckProducts
  llvm::Value* a =
      ProductOperand(*value.operands[0], block.rows * block.depth, block.depth,
                     block.rows == 1 ? block.cols : 1);
  llvm::Value* b = ProductOperand(*value.operands[1], block.cols * block.depth,
                                  block.depth, 1);
  const int sums = instruction->sums;
  lanes_ = {.var = -1, .first = 0, .count = sums, .width = sums};
  Form form = Resolve(stmt.offset);
  form.lane = 1;
  loop::Value current;
  current.kind = loop::Value::Kind::kLoad;
  current.dtype = value.dtype;
  current.buffer = stmt.buffer;
  current.offset = stmt.offset;
  const bool in_slot = buffer(stmt.buffer).scope == loop::Scope::kRegister &&
                       bases_.count(stmt.buffer) == 0;
  llvm::Value* old =
      in_slot ? LoadRegister(stmt.buffer, form).value
              : LoadOnce({stmt.buffer, form, sums, sums, {}, 0}, 0).value;
  if (type == DType::kBF16) {
    const auto as_bfloat = [&](llvm::Value* x) {
      return b_.CreateBitCast(
          x, WithLanesOf(llvm::Type::getBFloatTy(context()), x->getType()));
    };
    a = as_bfloat(a);
    b = as_bfloat(b);
  }
  if (instruction->operands == ProductInstruction::Operands::kWords) {
    a = b_.CreateBitCast(a, old->getType());
    b = b_.CreateBitCast(b, old->getType());
  }
  if (instruction->swap) std::swap(a, b);
  std::vector<llvm::Type*> types;
  if (instruction->overloaded) types = {old->getType(), a->getType()};
  llvm::Value* sum =
      b_.CreateIntrinsic(instruction->intrinsic, types, {old, a, b});
  StoreTo(stmt.buffer, form, {sum, true});
  lanes_ = Lanes();
}

// Stores of a vector loop to every D-th element, which together fill the
// elements in between: one store of what they store, interleaved. False when
// the block is something else.
bool KernelEmitter::EmitInterleaved(const loop::Stmt& block) {
  const size_t step = block.body.size();
  if (lanes_.width == 1 || step < 2 || (step & (step - 1)) != 0) return false;
  const auto plain_store = [](const loop::StmtPtr& stmt) {
    return stmt->kind == loop::Stmt::Kind::kStore &&
           stmt->accumulate == Reduction::kNone && !stmt->streaming;
  };
  if (!std::all_of(block.body.begin(), block.body.end(), plain_store)) {
    return false;
  }
  const int id = block.body[0]->buffer;
  const bool in_slot =
      buffer(id).scope == loop::Scope::kRegister && bases_.count(id) == 0;
  if (in_slot) return false;
  Form form = Resolve(block.body[0]->offset);
  if (form.lane != static_cast<int64_t>(step)) return false;
  for (size_t i = 0; i < step; ++i) {
    Form expected = form;
    expected.constant += static_cast<int64_t>(i);
    if (block.body[i]->buffer != id ||
        !(Resolve(block.body[i]->offset) == expected)) {
      return false;
    }
    std::set<int> read;
    CollectRead(*block.body[i]->value, read);
    if (read.count(id) > 0) return false;
  }
  const DType dtype = buffer(id).dtype;
  std::vector<llvm::Value*> parts;
  for (const loop::StmtPtr& stmt : block.body) {
    parts.push_back(
        ToMemory(b_, state_.traits, ToVector(Emit(*stmt->value)), dtype));
  }
  llvm::Value* all = Interleave(b_, parts);
  const Lanes lanes = lanes_;
  lanes_.count *= static_cast<int>(step);
  lanes_.width *= static_cast<int>(step);
  form.lane = 1;
  Forget(id, form);
  llvm::Value* address = Address(id, form);
  const llvm::Align align(DTypeBytes(dtype));
  if (llvm::Value* mask = ActiveLanes()) {
    b_.CreateMaskedStore(all, address, align, mask);
  } else {
    b_.CreateAlignedStore(all, address, align);
  }
  lanes_ = lanes;
  return true;
}

}  // namespace regatta::cpu

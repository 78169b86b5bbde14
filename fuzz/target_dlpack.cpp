// A DLPack tensor with arbitrary fields. It is refused, or its size is that of its shape, and its elements
// are gathered as the strides state, without a byte before or after them.
#include "dlpack_layout.h"
#include "fuzzing.h"
#include "hostile_tensor.h"

using namespace halyard;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Source source({data, size});
  const fuzz::HostileTensor hostile(source);
  const Result<dlpack::Layout> layout = dlpack::layout_of(hostile.tensor);
  if (!layout) {
    if (std::string_view(layout.error().message()).empty())
      fuzz::finding("a tensor is refused without a reason");
    return 0;
  }
  std::vector<uint8_t> expected;
  const bool is_within = hostile.elements(expected);
  if (layout->size == 0 && !expected.empty()) fuzz::finding("a tensor with elements counts as empty");
  if (!is_within) return 0;  // the producer is responsible for other memory
  if (layout->size != expected.size()) fuzz::finding("a tensor has another size than its elements");
  // A block of exactly that size, so that AddressSanitizer checks its ends.
  const auto gathered = std::make_unique<uint8_t[]>(expected.size());
  if (layout->is_dense) {
    if (layout->size != 0) std::memcpy(gathered.get(), layout->first, layout->size);
  } else {
    dlpack::gather(hostile.tensor, *layout, gathered.get());
  }
  if (!std::equal(expected.begin(), expected.end(), gathered.get()))
    fuzz::finding("other elements than the tensor's");
  return 0;
}

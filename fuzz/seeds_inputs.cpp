// Writes texts of arguments, and npy files, each after the byte that selects the kind.
#include <string>

#include "seeds.h"

namespace halyard::fuzz {

namespace {

std::string npy(const std::string& header, size_t bytes) {
  std::string file = "\x93NUMPY";
  file += {1, 0, static_cast<char>(header.size()), static_cast<char>(header.size() >> 8)};
  file += header;
  for (size_t i = 0; i < bytes; ++i) file += static_cast<char>(i);
  return file;
}

}  // namespace

void write_inputs(const std::filesystem::path& folder) {
  int number = 0;
  const auto write = [&](char which, const std::string& text) {
    const std::string seed = which + text;
    write_seed(folder / std::to_string(number++), seed.data(), seed.size());
  };
  for (char which = 0; which < 4; ++which)
    for (const char* text : {"5", "-1", "0x1F", "017", "4294967295", "1.5e3", "-inf", "nan", "0x1p-3"})
      write(which, text);
  for (const char* text :
       {"2x3xf32=[1 2 3][4 5 6]", "4xi32=0x10,-1,017,4294967295", "3xsi8=-128", "2xui16=65535,0",
        "2xi64=-1,5", "1xui64=18446744073709551615", "2xi1=true,0", "2xcf64=1+2j,-3.5", "cf128=(1e3-2j)",
        "2x*16=ABCD,0123", "4xf16=1.5,inf,nan,-0", "3xbf16=1e3", "2xf8E4M3FN=0.25,448", "0x2xf64", "xi8=7"})
    write(5, text);
  for (const char* descr : {"<f4", ">f4", "|b1", "<i8", "<c8", ">c16", "<V2", "bfloat16", "|V3", "=u2"})
    write(4, npy(std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (2, 3), }    \n",
                 96));
  write(4, npy("{'shape': (2L, 3L), 'fortran_order': True, 'descr': '<i2'}    \n", 12));
  write(4, npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': ()}    \n", 4));
}

}  // namespace halyard::fuzz

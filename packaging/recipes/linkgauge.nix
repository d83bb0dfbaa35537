# nix-build -E '(import <nixpkgs> { }).callPackage ./linkgauge.nix { }'
{ lib, fetchurl, python3Packages }:

python3Packages.buildPythonApplication rec {
  pname = "linkgauge";
  version = "@VERSION@";
  pyproject = true;

  src = fetchurl {
    url = "@REPOSITORY@/releases/download/v${version}/linkgauge-${version}.tar.gz";
    sha256 = "@SHA256@";
  };

  build-system = [ python3Packages.setuptools ];
  dependencies = with python3Packages; [
    click
    platformdirs
    rich
    textual
    uvloop
  ];

  # The tests need namespaces and the network.
  doCheck = false;
  pythonImportsCheck = [ "linkgauge" ];

  meta = {
    description = "Is this network link as fast as it should be? If not, why?";
    homepage = "@REPOSITORY@";
    license = lib.licenses.mit;
    mainProgram = "linkgauge";
  };
}

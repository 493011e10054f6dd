{ Exceptions, also those that faults raise; reference counts; threads. }
{$mode objfpc}
{$linklib c}
program main;

uses
  cthreads, sysutils, classes;

type
  TWorker = class(TThread)
    sum: integer;
    procedure Execute; override;
  end;

procedure TWorker.Execute;
var
  k: integer;
begin
  for k := 1 to 1000 do
    sum := sum + length(inttostr(k));
end;

var
  i: integer;
  text: ansistring;
  worker: TWorker;
  nothing: ^integer;
begin
  text := '';
  for i := 1 to 1000 do
    text := text + inttostr(i * i);
  writeln(length(text));
  try
    raise Exception.Create('words')
  except
    on error: Exception do writeln('caught ', error.message)
  end;
  worker := TWorker.Create(false);
  worker.WaitFor;
  writeln(worker.sum);
  try
    i := 0;
    writeln(10 div i)
  except
    on error: Exception do writeln(error.message)
  end;
  try
    nothing := nil;
    writeln(nothing^)
  except
    on error: Exception do writeln(error.message)
  end;
  halt(4)
end.
